/* Seconds of a call, the caches warm: by a clock that does not jump, where the C library's headers show one; else by
   the time of day, or that of all threads. */
static double try_now(void)
{
#if defined(_OPENMP)
    return omp_get_wtime();
#elif defined(CLOCK_MONOTONIC) || defined(TIME_UTC)
    struct timespec t;
#if defined(CLOCK_MONOTONIC)
    clock_gettime(CLOCK_MONOTONIC, &t);
#else
    timespec_get(&t, TIME_UTC);
#endif
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    return (double)clock() / (double)CLOCKS_PER_SEC;
#endif
}

typedef struct try_speed {
    double best, median;
} try_speed;

static int try_order(const void *a, const void *b)
{
    const double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

/* Seconds of some calls in a row. Where values would leave their range after a few, they are the first ones again. */
static double try_sample(try_case *c, int how, int32_t threads, int64_t calls, int restart)
{
    double begin;
    int64_t n;
    if (restart) try_restart(c, TRY_HAVE, 0);
    begin = try_now();
    for (n = 0; n < calls; n++) (void)c->routine->call(c, how, threads);
    return try_now() - begin;
}

/* A sample has as many calls as take a while, for the clock's sake: one where they depend on one another. */
static try_speed try_measure(try_case *c, int how, int32_t threads, double seconds)
{
    static double sample[1000];
    const double begin = try_now(), shortest = seconds > 0.1 ? seconds / 500 : 2e-4;
    try_speed speed = {0.0, 0.0};
    int64_t calls = 1;
    int n, count = 0, restart = c->routine->drifts;
    if (!try_take_workspace(c, how, threads)) return speed;
    for (n = 0; n < c->routine->arrays; n++) restart |= c->array[n].is->use > TRY_READ && !try_is_float(&c->array[n]);
    try_restart(c, TRY_HAVE, 1);
    while (!c->routine->drifts && calls < 1 << 24 && try_sample(c, how, threads, calls, restart) < shortest) calls *= 2;
    do sample[count++] = try_sample(c, how, threads, calls, restart) / (double)calls;
    while (count < 1000 && try_now() - begin < seconds);
    free(c->memory);
    qsort(sample, (size_t)count, sizeof *sample, try_order);
    speed.best = sample[0];
    speed.median = sample[count / 2];
    return speed;
}
