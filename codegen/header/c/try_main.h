/* The program: what is here, what is right, and how fast it is. */

#define PFX_TRY_SMALL 1048576 /* elements, and flops/16, of a trial that is tried in every way */
#define PFX_TRY_PLAIN_FLOPS (1LL << 31) /* what plain loops may have; a quarter of it where nothing is measured */

typedef struct pfx_try_options {
  double seconds;
  int quick, only; /* only: a place in pfx_try_isas, or -1 */
  int32_t threads, team[2]; /* of measured calls, and of checked ones */
} pfx_try_options;

static int pfx_try_is_small(const pfx_try_case *c)
{
  int64_t elements = 0;
  int n;
  for (n = 0; n < c->routine->arrays; n++) elements += c->array[n].elements;
  return elements <= PFX_TRY_SMALL && c->flops / 16 <= PFX_TRY_SMALL;
}

/* Takes an instruction set, if it is wanted and runs here. */
static int pfx_try_use(const pfx_try_options *o, int which)
{
  return (o->only < 0 || o->only == which) && pfx_force_isa(pfx_try_isas[which].isa) == PFX_OK;
}

static void pfx_try_print_head(const pfx_try_options *o)
{
  const pfx_isa usual = pfx_isa_in_use();
  int n;
  printf("%s\ncompiler: %s\ninstruction sets:", PFX_TRY_TITLE, PFX_TRY_COMPILER);
  for (n = 0; n < PFX_TRY_ISAS; n++) {
    const int runs = pfx_force_isa(pfx_try_isas[n].isa) == PFX_OK;
    printf("%s %s %s%s", n ? "," : "", pfx_try_isas[n].name, runs ? "yes" : "no", pfx_try_isas[n].isa == usual ? " (in use)" : "");
  }
  printf("\nthreads: %s; checked with %d", PFX_TRY_TEAMS, (int)o->team[0]);
  if (o->team[1]) printf(" and %d", (int)o->team[1]);
  if (!o->quick) printf(", measured with %d", (int)o->threads);
  printf("\n");
}

/* All small trials of a routine on the instruction set in use, by both functions, with each number of threads; where
   there are few trials, each in several layouts. */
static int pfx_try_all_small(const pfx_try_options *o, const pfx_try_routine *routine, const char *isa)
{
  const int layouts = routine->trials < 7 ? 6 : 1;
  int round, tried = 0, right = 1, how, team;
  double worst = 0.0;
  for (round = 0; round < routine->trials * layouts && right; round++) {
    pfx_try_case c = pfx_try_describe(routine, round / layouts, round);
    if (!pfx_try_is_small(&c)) continue;
    tried += round % layouts == 0;
    if (pfx_try_prepare(&c, PFX_TRY_PLAIN))
      for (how = PFX_TRY_GIVEN; how <= PFX_TRY_ALLOCATING; how++)
        for (team = 0; team < 2 && o->team[team] && right; team++)
          right = pfx_try_check(&c, isa, how, o->team[team], &worst);
    pfx_try_release(&c);
  }
  printf("  %-*s  %-9s", PFX_TRY_WIDTH, routine->name, isa);
  if (right) printf("  %5d  %11.4f  PASS\n", tried, worst);
  else printf("  %5d  %11s  FAIL\n", tried, "");
  return right;
}

static int pfx_try_checks(const pfx_try_options *o)
{
  int failed = 0, n, which;
  printf("\n  %-*s  %-9s  sizes  worst error (1 is allowed)\n", PFX_TRY_WIDTH, "checked", "");
  for (n = 0; n < PFX_TRY_ROUTINES; n++) {
    const pfx_try_routine *const routine = &pfx_try_routines[n];
    int right;
    for (which = 0; which < PFX_TRY_ISAS; which++)
      if (pfx_try_use(o, which)) failed += !pfx_try_all_small(o, routine, pfx_try_isas[which].name);
    right = pfx_try_refuses(routine);
    printf("  %-*s  bad arguments %16s  %s\n", PFX_TRY_WIDTH, routine->name, "", right ? "PASS" : "FAIL");
    failed += !right;
  }
  return failed;
}

/* Measures, unless the user is in a hurry, and prints a line. */
static void pfx_try_print_speed(const pfx_try_options *o, pfx_try_case *c, int how, const char *who, const char *result)
{
  const double flops = 1e-9 * (double)c->flops;
  pfx_try_speed speed = {0.0, 0.0};
  if (!o->quick && c->flops) speed = pfx_try_measure(c, how, o->threads, o->seconds);
  printf("    %-*s", PFX_TRY_WIDTH + 10, who);
  if (speed.best > 0.0) printf("  %9.2f %9.2f", flops / speed.best, flops / speed.median);
  printf("  %s\n", result);
}

/* A large or measured trial: on each instruction set one checked call, and its speed; then that of the plain loops. */
static int pfx_try_large(const pfx_try_options *o, pfx_try_case *c)
{
  const int plain = c->flops <= PFX_TRY_PLAIN_FLOPS / (o->quick ? 4 : 1);
  int failed = 0, which;
  printf("  %s", c->routine->name);
  pfx_try_print_sizes(c);
  printf("%s\n", plain ? "" : " (too much for the plain loops: compared with the portable kernel)");
  pfx_force_isa(PFX_ISA_PORTABLE);
  if (!pfx_try_prepare(c, plain ? PFX_TRY_PLAIN : PFX_TRY_ALLOCATING)) {
    printf("    no memory\n");
    return 0;
  }
  for (which = 0; which < PFX_TRY_ISAS; which++) {
    double worst = 0.0;
    int right;
    if (!pfx_try_use(o, which)) continue;
    right = pfx_try_check(c, pfx_try_isas[which].name, PFX_TRY_GIVEN, o->threads, &worst);
    pfx_try_print_speed(o, c, PFX_TRY_GIVEN, pfx_try_isas[which].name, right ? "PASS" : "FAIL");
    failed += !right;
  }
  if (!o->quick && plain && c->flops) pfx_try_print_speed(o, c, PFX_TRY_PLAIN, "plain loops", "one thread");
  return failed;
}

static int pfx_try_all_large(const pfx_try_options *o)
{
  int failed = 0, n, trial, first = 1;
  for (n = 0; n < PFX_TRY_ROUTINES; n++)
    for (trial = 0; trial < pfx_try_routines[n].trials; trial++) {
      pfx_try_case c = pfx_try_describe(&pfx_try_routines[n], trial, 4);
      if (pfx_try_is_small(&c) && (o->quick || !c.flops)) continue;
      if (first && o->quick) printf("\n  large sizes\n");
      else if (first) printf("\n  %-*s  %9s %9s\n", PFX_TRY_WIDTH + 12, "GFLOP/s", "best", "median");
      first = 0;
      failed += pfx_try_large(o, &c);
      pfx_try_release(&c);
    }
  return failed;
}

/* An option and its value; 0 where they are wrong. */
static int pfx_try_option(pfx_try_options *o, const char *name, const char *value)
{
  char *end;
  if (!strcmp(name, "--seconds")) {
    o->seconds = strtod(value, &end);
    return end != value && !*end && o->seconds > 0.0 && o->seconds < 1e6;
  }
  if (!strcmp(name, "--threads")) {
    const long threads = strtol(value, &end, 10);
    o->threads = (int32_t)threads;
    return end != value && !*end && threads > 0 && threads <= (PFX_TRY_THREADS ? PFX_MAX_THREADS : 1);
  }
  if (strcmp(name, "--isa")) return 0;
  for (o->only = 0; o->only < PFX_TRY_ISAS; o->only++)
    if (!strcmp(value, pfx_try_isas[o->only].name)) return 1;
  return 0;
}

int main(int argc, char **argv)
{
  pfx_try_options o = {0.2, 0, -1, 1, {1, PFX_TRY_THREADS ? 2 : 0}};
  int n, failed;
  for (n = 1; n < argc; n++) {
    if (!strcmp(argv[n], "--quick")) {
      o.quick = 1;
    } else if (n + 1 == argc || !pfx_try_option(&o, argv[n], argv[n + 1])) {
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
  if (o.only >= 0 && !pfx_try_use(&o, o.only)) {
    fprintf(stderr, "%s: %s does not run here\n", argv[0], pfx_try_isas[o.only].name);
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* so that nothing is lost where a kernel crashes */
  pfx_force_isa(PFX_ISA_AUTO);
  pfx_try_print_head(&o);
  failed = pfx_try_checks(&o) + pfx_try_all_large(&o);
  pfx_force_isa(PFX_ISA_AUTO);
  printf("\n%s\n", failed ? "FAIL" : "PASS");
  return failed ? 1 : 0;
}
