/* The program: what is here, what is right, and how fast it is. */
typedef struct try_options {
    double seconds;
    int quick, only;          /* only: a place in try_isas, or -1 */
    int32_t threads, team[2]; /* of measured calls; of checked ones */
} try_options;

/* Whether a trial is tried in every way. */
static int try_is_small(const try_case *c)
{
    int64_t elements = 0;
    int n;
    for (n = 0; n < c->routine->arrays; n++) elements += c->array[n].elements;
    return elements <= 1 << 20 && c->flops <= 1 << 24;
}

/* Takes an instruction set, if it is wanted and runs here. */
static int try_use(const try_options *o, int which)
{
    return (o->only < 0 || o->only == which) && pfx_force_isa(try_isas[which].isa) == PFX_OK;
}

static void try_print_head(const try_options *o)
{
    const pfx_isa usual = pfx_isa_in_use();
    int n;
    printf("%s\ncompiler: %s\ninstruction sets:", TRY_TITLE, TRY_COMPILER);
    for (n = 0; n < TRY_ISAS; n++)
        printf("%s %s %s%s", n ? "," : "", try_isas[n].name, pfx_force_isa(try_isas[n].isa) == PFX_OK ? "yes" : "no",
               try_isas[n].isa == usual ? " (in use)" : "");
    printf("\nthreads: %s; checked with %d", TRY_TEAMS, (int)o->team[0]);
    if (o->team[1]) printf(" and %d", (int)o->team[1]);
    if (!o->quick) printf(", measured with %d", (int)o->threads);
    printf("\n");
}

/* All small trials on the instruction set in use, by both functions, with each number of threads; where there are few
   trials, each in several layouts. */
static int try_all_small(const try_options *o, const try_routine *routine, const char *isa)
{
    const int layouts = routine->trials < 7 ? 6 : 1;
    int round, tried = 0, right = 1, how, team;
    double worst = 0.0;
    for (round = 0; round < routine->trials * layouts && right; round++) {
        try_case c = try_describe(routine, round / layouts, round);
        if (!try_is_small(&c)) continue;
        tried += round % layouts == 0;
        if (try_prepare(&c, TRY_PLAIN))
            for (how = TRY_GIVEN; how <= TRY_ALLOCATING; how++)
                for (team = 0; team < 2 && o->team[team] && right; team++)
                    right = try_check(&c, isa, how, o->team[team], &worst);
        try_release(&c);
    }
    printf("  %-*s  %-13s  %5d  ", TRY_WIDTH, routine->name, isa, tried);
    if (right) printf("%11.4f  PASS\n", worst);
    else printf("%11s  FAIL\n", "");
    return right;
}

static int try_checks(const try_options *o)
{
    int failed = 0, n, which;
    printf("\n  %-*s  %-13s  sizes  worst error (1 is allowed)\n", TRY_WIDTH, "checked", "");
    for (n = 0; n < TRY_ROUTINES; n++) {
        int right;
        for (which = 0; which < TRY_ISAS; which++)
            if (try_use(o, which)) failed += !try_all_small(o, &try_routines[n], try_isas[which].name);
        right = try_refuses(&try_routines[n]);
        printf("  %-*s  %-13s  %18s  %s\n", TRY_WIDTH, try_routines[n].name, "bad arguments", "", right ? "PASS" : "FAIL");
        failed += !right;
    }
    return failed;
}

static void try_print_speed(const try_options *o, try_case *c, int how, const char *who, const char *result)
{
    const double flops = 1e-9 * (double)c->flops;
    try_speed speed = {0.0, 0.0};
    if (!o->quick && c->flops) speed = try_measure(c, how, o->threads, o->seconds);
    printf("    %-*s", TRY_WIDTH + 13, who);
    if (speed.best > 0.0) printf("  %9.2f %9.2f", flops / speed.best, flops / speed.median);
    printf("  %s\n", result);
}

/* A large or measured trial: on each instruction set one checked call, and its speed; then that of the plain loops,
   where they do not take for ever. */
static int try_large(const try_options *o, try_case *c)
{
    const int plain = c->flops <= (o->quick ? 1LL << 27 : 1LL << 31);
    int failed = 0, which;
    printf("  %s", c->routine->name);
    try_print_sizes(c);
    printf("%s\n", plain ? "" : " (compared with the portable kernel: too much for the plain loops)");
    pfx_force_isa(PFX_ISA_PORTABLE);
    if (!try_prepare(c, plain ? TRY_PLAIN : TRY_ALLOCATING)) {
        printf("    no memory\n");
        return 0;
    }
    for (which = 0; which < TRY_ISAS; which++) {
        const int itself = !plain && try_isas[which].isa == PFX_ISA_PORTABLE;
        double worst = 0.0;
        int right;
        if (!try_use(o, which)) continue;
        right = itself || try_check(c, try_isas[which].name, TRY_GIVEN, o->threads, &worst);
        try_print_speed(o, c, TRY_GIVEN, try_isas[which].name, itself ? "not checked" : right ? "PASS" : "FAIL");
        failed += !right;
    }
    if (!o->quick && plain && c->flops) try_print_speed(o, c, TRY_PLAIN, "plain loops", "one thread");
    return failed;
}

static int try_all_large(const try_options *o)
{
    int failed = 0, n, trial, first = 1;
    for (n = 0; n < TRY_ROUTINES; n++)
        for (trial = 0; trial < try_routines[n].trials; trial++) {
            try_case c = try_describe(&try_routines[n], trial, 4);
            if (try_is_small(&c) && (o->quick || !c.flops)) continue;
            if (first && o->quick) printf("\n  large sizes\n");
            else if (first) printf("\n  %-*s  %9s %9s\n", TRY_WIDTH + 15, "GFLOP/s", "best", "median");
            first = 0;
            failed += try_large(o, &c);
            try_release(&c);
        }
    return failed;
}

/* An option and its value; 0 where they are wrong. */
static int try_option(try_options *o, const char *name, const char *value)
{
    char *end;
    const double number = strtod(value, &end);
    if (!strcmp(name, "--isa")) {
        for (o->only = 0; o->only < TRY_ISAS; o->only++)
            if (!strcmp(value, try_isas[o->only].name)) return 1;
    } else if (end != value && !*end && !strcmp(name, "--seconds")) {
        o->seconds = number;
        return number > 0.0 && number < 1e6;
    } else if (end != value && !*end && !strcmp(name, "--threads") && number >= 1.0) {
        o->threads = number <= (TRY_THREADS ? PFX_MAX_THREADS : 1) ? (int32_t)number : 0;
        return (double)o->threads >= number;
    }
    return 0;
}

int main(int argc, char **argv)
{
    try_options o = {0.2, 0, -1, 1, {1, TRY_THREADS ? 2 : 0}};
    int n, failed;
    for (n = 1; n < argc; n++) {
        if (!strcmp(argv[n], "--quick")) {
            o.quick = 1;
        } else if (n + 1 == argc || !try_option(&o, argv[n], argv[n + 1])) {
            fprintf(stderr, "usage: %s [--quick] [--seconds S] [--threads N] [--isa NAME]\n%s", argv[0],
                    "  --quick      check, and measure nothing\n"
                    "  --seconds S  how long each speed is measured (0.2)\n"
                    "  --threads N  of the calls that are measured (1)\n"
                    "  --isa NAME   one instruction set alone\n");
            return 2;
        } else {
            n++;
        }
    }
    if (o.threads > 1) o.team[1] = o.threads;
    if (o.only >= 0 && !try_use(&o, o.only)) {
        fprintf(stderr, "%s: %s does not run here\n", argv[0], try_isas[o.only].name);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that nothing is lost where a kernel crashes */
    pfx_force_isa(PFX_ISA_AUTO);
    try_print_head(&o);
    failed = try_checks(&o) + try_all_large(&o);
    pfx_force_isa(PFX_ISA_AUTO);
    printf("\n%s\n", failed ? "FAIL" : "PASS");
    return failed ? 1 : 0;
}
