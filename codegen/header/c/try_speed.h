/* Seconds of a call, the caches warm: the best and the median of many samples. */

/* A clock that does not jump, where the C library's headers show one; else time of day, or this process's time. */
static double pfx_try_now(void)
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

#define PFX_TRY_SAMPLES 1000
#define PFX_TRY_SHORTEST 2e-4 /* seconds of a sample, for the clock's sake: as many calls as that takes */

typedef struct pfx_try_speed {
  double best, median;
} pfx_try_speed;

static int pfx_try_order(const void *a, const void *b)
{
  const double first = *(const double *)a, second = *(const double *)b;
  return (first > second) - (first < second);
}

/* Seconds of some calls in a row. Where values would leave their range after a few, they are the first ones again. */
static double pfx_try_sample(pfx_try_case *c, int how, int32_t threads, int64_t calls, int restart)
{
  double begin;
  int64_t n;
  if (restart) pfx_try_restart(c, PFX_TRY_HAVE, 0);
  begin = pfx_try_now();
  for (n = 0; n < calls; n++) (void)c->routine->call(c, how, threads);
  return pfx_try_now() - begin;
}

static pfx_try_speed pfx_try_measure(pfx_try_case *c, int how, int32_t threads, double seconds)
{
  static double sample[PFX_TRY_SAMPLES];
  const double begin = pfx_try_now(), shortest = seconds / 500 > PFX_TRY_SHORTEST ? seconds / 500 : PFX_TRY_SHORTEST;
  int64_t calls = 1;
  int n, count = 0, restart = c->routine->drifts;
  pfx_try_speed speed = {0.0, 0.0};
  if (!pfx_try_take_workspace(c, how, threads)) return speed;
  for (n = 0; n < c->routine->arrays; n++)
    restart |= c->array[n].use != PFX_TRY_READ && !pfx_try_is_float(&c->array[n]);
  pfx_try_restart(c, PFX_TRY_HAVE, 1);
  while (!c->routine->drifts && calls < (1 << 24) && pfx_try_sample(c, how, threads, calls, restart) < shortest) calls *= 2;
  do sample[count++] = pfx_try_sample(c, how, threads, calls, restart) / (double)calls;
  while (count < PFX_TRY_SAMPLES && pfx_try_now() - begin < seconds);
  free(c->memory);
  qsort(sample, (size_t)count, sizeof sample[0], pfx_try_order);
  speed.best = sample[0];
  speed.median = sample[count / 2];
  return speed;
}
