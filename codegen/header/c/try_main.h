/* The program: what is here, what is right, and how fast it is. */

#define PFX_TRY_SMALL 1048576      /* elements and flops/16 of a trial that is tried in every way */
#define PFX_TRY_PATIENCE 2147483648.0 /* flops that plain loops may have; a quarter of it when there is no hurry for speed */

typedef struct pfx_try_options {
  double seconds;
  int quick, only; /* only: a place in pfx_try_isas, or -1 */
  int32_t threads;
  int teams;
  int32_t team[2]; /* how many threads checked calls have */
} pfx_try_options;

static int pfx_try_is_small(const pfx_try_case *c)
{
  int64_t elements = 0;
  int n;
  for (n = 0; n < c->routine->arrays; n++) elements += pfx_try_elements(&c->array[n]);
  return elements <= PFX_TRY_SMALL && c->flops / 16 <= PFX_TRY_SMALL;
}

/* Takes an instruction set, if it is wanted and runs here. */
static int pfx_try_use(const pfx_try_options *o, int which)
{
  return (o->only < 0 || o->only == which) && pfx_force_isa(pfx_try_isas[which].isa) == PFX_OK;
}

static void pfx_try_print_head(const pfx_try_options *o)
{
  int n;
  pfx_force_isa(PFX_ISA_AUTO);
  printf("%s\ncompiler: %s\n", PFX_TRY_TITLE, PFX_TRY_COMPILER);
  printf("instruction sets:");
  for (n = 0; n < PFX_TRY_ISAS; n++) {
    const int in_use = pfx_isa_in_use() == pfx_try_isas[n].isa, runs = pfx_force_isa(pfx_try_isas[n].isa) == PFX_OK;
    printf("%s %s %s%s", n ? "," : "", pfx_try_isas[n].name, runs ? "yes" : "no", in_use ? " (in use)" : "");
    pfx_force_isa(PFX_ISA_AUTO);
  }
  printf("\nthreads: %s; checked with", PFX_TRY_TEAMS);
  for (n = 0; n < o->teams; n++) printf("%s %d", n ? " and" : "", (int)o->team[n]);
  if (!o->quick) printf(", timed with %d by %s", (int)o->threads, PFX_TRY_CLOCK);
  printf("\n");
}

/* One trial on the instruction set in use, by both entries, with each number of threads. */
static int pfx_try_small(const pfx_try_options *o, pfx_try_case *c, const char *isa, double *worst)
{
  pfx_try_setting s;
  int team, right = 1;
  s.isa = isa;
  if (!pfx_try_prepare(c, PFX_TRY_PLAIN)) return 1;
  for (s.how = PFX_TRY_ALLOCATING; s.how <= PFX_TRY_GIVEN && right; s.how++)
    for (team = 0; team < o->teams && right; team++) {
      s.threads = o->team[team];
      right = pfx_try_check(c, &s, worst);
    }
  return right;
}

/* All small trials of a routine on the instruction set in use; where there are few, each in several layouts. */
static int pfx_try_all_small(const pfx_try_options *o, const pfx_try_routine *routine, const char *isa)
{
  const int layouts = routine->trials < 7 ? 6 : 1;
  int round, tried = 0, right = 1;
  double worst = 0.0;
  for (round = 0; round < routine->trials * layouts && right; round++) {
    pfx_try_case c = pfx_try_describe(routine, round / layouts, round);
    if (!pfx_try_is_small(&c)) continue;
    tried += round % layouts == 0;
    right = pfx_try_small(o, &c, isa, &worst);
    pfx_try_release(&c);
  }
  printf("  %-*s  %-11s", PFX_TRY_WIDTH, routine->name, isa);
  if (right) printf(" %6d  %11.4f  PASS\n", tried, worst);
  else printf(" %6d  %11s  FAIL\n", tried, "-");
  return right;
}

static int pfx_try_checks(const pfx_try_options *o)
{
  int failed = 0, n, which;
  printf("\n  %-*s  %-11s  sizes  worst error  (1 is allowed)\n", PFX_TRY_WIDTH, "checked", "");
  for (n = 0; n < PFX_TRY_ROUTINES; n++) {
    const pfx_try_routine *const routine = &pfx_try_routines[n];
    int right;
    for (which = 0; which < PFX_TRY_ISAS; which++)
      if (pfx_try_use(o, which)) failed += !pfx_try_all_small(o, routine, pfx_try_isas[which].name);
    pfx_force_isa(PFX_ISA_AUTO);
    right = pfx_try_refuses(routine);
    printf("  %-*s  %-11s %6s  %11s  %s\n", PFX_TRY_WIDTH, routine->name, "bad calls", "", "", right ? "PASS" : "FAIL");
    failed += !right;
  }
  return failed;
}

static void pfx_try_print_speed(const pfx_try_case *c, const char *who, const pfx_try_speed *speed, const char *result)
{
  const double flops = 1e-9 * (double)c->flops;
  printf("    %-*s", PFX_TRY_WIDTH + 11, who);
  if (speed && speed->best > 0.0 && c->flops > 0)
    printf("  %9.2f %9.2f  %s\n", flops / speed->best, flops / speed->median, result);
  else printf("  %9s %9s  %s\n", "", "", result);
}

/* One large or timed trial: on each instruction set one checked call, and its speed; then that of the plain loops. */
static int pfx_try_large(const pfx_try_options *o, pfx_try_case *c)
{
  const int plain = (double)c->flops <= PFX_TRY_PATIENCE / (o->quick ? 4.0 : 1.0);
  int failed = 0, which;
  pfx_try_setting s;
  pfx_try_speed speed;
  s.how = PFX_TRY_GIVEN;
  s.threads = o->threads;
  printf("  %s", c->routine->name);
  pfx_try_print_sizes(c);
  printf("%s\n", plain ? "" : " (too much for the plain loops: compared with the portable kernel)");
  if (!plain) pfx_force_isa(PFX_ISA_PORTABLE);
  if (!pfx_try_prepare(c, plain ? PFX_TRY_PLAIN : PFX_TRY_ALLOCATING)) {
    printf("    not tried: no memory\n");
    return 0;
  }
  for (which = 0; which < PFX_TRY_ISAS; which++) {
    double worst = 0.0;
    int right;
    if (!pfx_try_use(o, which)) continue;
    s.isa = pfx_try_isas[which].name;
    right = pfx_try_check(c, &s, &worst);
    if (!o->quick) speed = pfx_try_measure(c, &s, o->seconds);
    pfx_try_print_speed(c, s.isa, o->quick ? NULL : &speed, right ? "PASS" : "FAIL");
    failed += !right;
  }
  if (o->quick || !plain || !c->flops) return failed;
  s.how = PFX_TRY_PLAIN;
  speed = pfx_try_measure(c, &s, o->seconds);
  pfx_try_print_speed(c, "plain loops", &speed, "1 thread");
  return failed;
}

static int pfx_try_speeds(const pfx_try_options *o)
{
  int failed = 0, n, trial, first = 1;
  for (n = 0; n < PFX_TRY_ROUTINES; n++)
    for (trial = 0; trial < pfx_try_routines[n].trials; trial++) {
      pfx_try_case c = pfx_try_describe(&pfx_try_routines[n], trial, 1);
      if (pfx_try_is_small(&c) && (o->quick || !c.flops)) continue;
      if (first && o->quick) printf("\n  large sizes\n");
      else if (first) printf("\n  %-*s  %9s %9s\n", PFX_TRY_WIDTH + 13, "GFLOP/s", "best", "median");
      first = 0;
      failed += pfx_try_large(o, &c);
      pfx_try_release(&c);
    }
  return failed;
}

static int pfx_try_usage(const char *program)
{
  fprintf(stderr,
          "usage: %s [--quick] [--seconds S] [--threads N] [--isa NAME]\n"
          "  --quick      check, and don't measure\n"
          "  --seconds S  how long each speed is measured (0.2)\n"
          "  --threads N  of the calls that are measured (1)\n"
          "  --isa NAME   one instruction set only\n",
          program);
  return 2;
}

/* An option and its value; 0 where they are wrong. */
static int pfx_try_option(pfx_try_options *o, const char *name, const char *value)
{
  char *end;
  if (!strcmp(name, "--seconds")) {
    o->seconds = strtod(value, &end);
    return *value && !*end && o->seconds > 0.0;
  }
  if (!strcmp(name, "--threads")) {
    const long threads = strtol(value, &end, 10);
    o->threads = (int32_t)threads;
    return *value && !*end && threads > 0 && threads <= (PFX_TRY_THREADS ? PFX_MAX_THREADS : 1);
  }
  if (strcmp(name, "--isa")) return 0;
  for (o->only = 0; o->only < PFX_TRY_ISAS; o->only++)
    if (!strcmp(value, pfx_try_isas[o->only].name)) return 1;
  return 0;
}

int main(int argc, char **argv)
{
  pfx_try_options o = {0.2, 0, -1, 1, 1, {1, 2}};
  int n, failed;
  for (n = 1; n < argc; n++) {
    if (!strcmp(argv[n], "--quick")) o.quick = 1;
    else if (n + 1 == argc || !pfx_try_option(&o, argv[n], argv[n + 1])) return pfx_try_usage(argv[0]);
    else n++;
  }
  if (PFX_TRY_THREADS) o.teams = 2;
  if (o.threads > 1) o.team[1] = o.threads;
  if (o.only >= 0 && !pfx_try_use(&o, o.only)) {
    fprintf(stderr, "%s: %s does not run here\n", argv[0], pfx_try_isas[o.only].name);
    return 2;
  }
  pfx_try_print_head(&o);
  failed = pfx_try_checks(&o);
  failed += pfx_try_speeds(&o);
  pfx_force_isa(PFX_ISA_AUTO);
  printf("\n%s\n", failed ? "FAIL" : "PASS");
  return failed ? 1 : 0;
}
