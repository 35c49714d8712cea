/* GFLOP/s: calls for a twentieth of a second. */
static double pfx_speed(const pfx_tried *tried)
{
    const double start = pfx_seconds();
    double flops = 0, spent = 0;
    for (; spent < 0.05; spent = pfx_seconds() - start)
        flops += tried->once(tried->n);
    return flops / spent * 1e-9;
}

static void pfx_try_all(const char *isa)
{
    for (size_t at = 0; at < sizeof pfx_all_tried / sizeof *pfx_all_tried; at++) {
        const pfx_tried *const tried = pfx_all_tried + at;
        const int before = pfx_failures;
        for (int trial = 0; trial < PFX_TRIALS; trial++)
            tried->check(trial);
        printf("%-9s%-12s %s", isa, tried->name, pfx_failures == before ? "right" : "WRONG");
        printf("  %8.2f GFLOP/s (n = %d)\n", pfx_speed(tried), tried->n);
    }
}

int main(void)
{
    pfx_take_arrays_f32();
    pfx_take_arrays_f64();
    for (size_t at = 0; at < sizeof pfx_all_isas / sizeof *pfx_all_isas; at++)
        if (pfx_force_isa(pfx_all_isas[at].isa) == PFX_OK)
            pfx_try_all(pfx_all_isas[at].name);
    (void)pfx_force_isa(PFX_ISA_AUTO);
    pfx_drop_arrays_f32();
    pfx_drop_arrays_f64();
    printf("%d failures\n", pfx_failures);
    return pfx_failures != 0;
}
