/* The program: is it right, and how fast? */
enum { TRY_RIGHT, TRY_WRONG, TRY_IMPOSSIBLE }; /* the exit status */

static void try_print_sizes(const try_case *c)
{
    int n;
    if (!TRY_SIZES) printf("its sizes");
    for (n = 0; n < TRY_SIZES; n++) printf("%s%s=%lld", n ? " " : "", try_nest_size[n], (long long)c->size[n]);
}

static int try_order(const void *a, const void *b)
{
    const double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

/* Calls for a second, some at least: their best and median speed. */
static int try_measure(try_device *o, pfx_program *program, try_case *c)
{
    double sample[100], total = 0.0;
    int count = 0;
    do {
        sample[count] = try_once(o, program, c);
        if (sample[count] < 0.0) return TRY_IMPOSSIBLE;
        total += sample[count++];
    } while (count < 5 || (count < 100 && total < 1.0));
    qsort(sample, (size_t)count, sizeof *sample, try_order);
    printf("  %9.2f GFLOP/s at best, %9.2f in the median of %d calls\n", 1e-9 * (double)c->flops / sample[0],
           1e-9 * (double)c->flops / sample[count / 2], count);
    return TRY_RIGHT;
}

static int try_trial(try_device *o, pfx_program *program, int trial, int quick, double *worst)
{
    int result = TRY_IMPOSSIBLE;
    try_error error;
    try_case c;
    memset(&error, 0, sizeof error);
    if (!try_describe(&c, trial) || !try_prepare(&c)) {
        fprintf(stderr, "no memory for the arrays\n");
    } else if (try_check(o, program, &c, &error)) {
        result = error.excess <= 1.0 ? TRY_RIGHT : TRY_WRONG;
        if (result == TRY_WRONG || c.flops) printf("  "), try_print_sizes(&c);
        if (result == TRY_WRONG) try_print_error(&error);
        else if (c.flops) printf(": error %.4f of what is allowed\n", error.excess);
        if (result == TRY_RIGHT && c.flops && !quick) result = try_measure(o, program, &c);
    }
    if (error.excess > *worst) *worst = error.excess;
    try_free(&c);
    return result;
}

static int try_all(try_device *o, pfx_program *program, int quick)
{
    const int trials = (int)(sizeof try_nest_trial / sizeof *try_nest_trial);
    double worst = 0.0;
    int trial, result = TRY_RIGHT;
    for (trial = 0; trial < trials && result == TRY_RIGHT; trial++)
        result = try_trial(o, program, trial, quick, &worst);
    if (result == TRY_RIGHT) printf("PASS: %d sizes, worst error %.4f (1 is allowed)\n", trials, worst);
    else printf(result == TRY_WRONG ? "FAIL\n" : "not done\n");
    return result;
}

/* The .cl file beside the program. */
static const char *try_beside(const char *program, char *room, size_t bytes)
{
    const char *const slash = strrchr(program, '/');
    const size_t folder = slash ? (size_t)(slash - program) + 1 : 0;
    if (folder + sizeof TRY_FILE > bytes) return TRY_FILE;
    memcpy(room, program, folder);
    memcpy(room + folder, TRY_FILE, sizeof TRY_FILE);
    return room;
}

int main(int argc, char **argv)
{
    const char *wanted = getenv("OPENCL_DEVICE"), *path = NULL;
    pfx_program *program = NULL;
    char room[4096];
    try_device o;
    int n, quick = 0, result = TRY_IMPOSSIBLE;
    for (n = 1; n < argc; n++) {
        if (!strcmp(argv[n], "--quick")) {
            quick = 1;
        } else if (!strcmp(argv[n], "--device") && n + 1 < argc) {
            wanted = argv[++n];
        } else if (argv[n][0] != '-' && !path) {
            path = argv[n];
        } else {
            fprintf(stderr, "usage: %s [--quick] [--device NAME] [FILE.cl]\n%s", argv[0],
                    "  --quick        check, and measure nothing\n"
                    "  --device NAME  a part of the device's or its platform's name (or set OPENCL_DEVICE)\n"
                    "  FILE.cl        the kernels (" TRY_FILE " beside the program)\n");
            return TRY_IMPOSSIBLE;
        }
    }
    if (!path) path = try_beside(argv[0], room, sizeof room);
    printf("%s\n", TRY_TITLE);
    if (try_open(&o, wanted) && pfx_create(&program, o.context, o.device, path, stderr) == CL_SUCCESS)
        result = try_all(&o, program, quick);
    pfx_release(program);
    try_close(&o);
    return result;
}
