/* One routine at one trial's sizes: its arrays, what the plain loops make of them, and a checked call. */

/* How a routine is called: as plain loops, on a workspace that it is given, on one of its own. */
enum { PFX_TRY_PLAIN, PFX_TRY_GIVEN, PFX_TRY_ALLOCATING };

typedef struct pfx_try_case pfx_try_case;

typedef struct pfx_try_routine {
  const char *name;
  int sizes, arrays, delicate, drifts; /* drifts: a call depends on what the last one left */
  const char *const *size;
  int trials;
  const int64_t *trial; /* of each: flops (0: not to be timed), how many terms a sum has, and the sizes */
  void (*describe)(const int64_t *size, pfx_try_array *array);
  int64_t (*need)(const int64_t *size, int how, int32_t threads); /* the workspace */
  pfx_status (*call)(const pfx_try_case *c, int how, int32_t threads);
} pfx_try_routine;

struct pfx_try_case {
  const pfx_try_routine *routine;
  const int64_t *size;
  int64_t flops, terms;
  int round;
  pfx_try_array array[PFX_TRY_ARRAYS];
  unsigned char *memory; /* with the workspace in it */
  void *workspace;
  int64_t bytes;
};

/* The arrays' shapes at a trial; nothing is allocated yet. */
static pfx_try_case pfx_try_describe(const pfx_try_routine *routine, int trial, int round)
{
  const int64_t *const row = routine->trial + trial * (routine->sizes + 2);
  pfx_try_case c;
  int n;
  memset(&c, 0, sizeof c);
  c.routine = routine;
  c.flops = row[0];
  c.terms = row[1];
  c.size = row + 2;
  c.round = round;
  routine->describe(c.size, c.array);
  for (n = 0; n < routine->arrays; n++) pfx_try_lay_out(&c.array[n], n, round);
  return c;
}

/* A workspace with all bits set and a guard on either side; kernels get it at any address. 0 where there is no memory. */
static int pfx_try_take_workspace(pfx_try_case *c, int how, int32_t threads)
{
  const int64_t bytes = c->routine->need(c->size, how, threads);
  c->bytes = bytes > 0 ? bytes : 0;
  c->memory = pfx_try_memory(c->bytes + 3 * PFX_TRY_GUARD);
  if (!c->memory) return 0;
  c->workspace = c->memory + (size_t)(PFX_TRY_GUARD + (-(uintptr_t)c->memory & 63u)) + (how == PFX_TRY_PLAIN ? 0 : c->round % 5);
  return 1;
}

/* Gives arrays their first values in a copy, all or those that are written, and takes that copy for the next call. */
static void pfx_try_restart(pfx_try_case *c, int copy, int all)
{
  int n;
  for (n = 0; n < c->routine->arrays; n++) {
    pfx_try_array *const a = &c->array[n];
    const int own = copy == PFX_TRY_HAVE || a->use != PFX_TRY_READ;
    if (own && (all || a->use != PFX_TRY_READ)) memcpy(a->copy[copy], a->copy[PFX_TRY_START], (size_t)a->block);
    a->data = pfx_try_at(a, own ? copy : PFX_TRY_START, 0);
  }
}

/* Lets the plain loops, or the kernels in use, make what is wanted. -1: no memory; else whether all of it is finite. */
static int pfx_try_want(pfx_try_case *c, int how)
{
  int64_t strange = 0;
  int n;
  if (!pfx_try_take_workspace(c, how, 1)) return -1;
  pfx_try_restart(c, PFX_TRY_WANT, 1);
  if (c->routine->call(c, how, 1) != PFX_OK) strange = 1;
  free(c->memory);
  for (n = 0; n < c->routine->arrays; n++)
    if (c->array[n].use != PFX_TRY_READ) (void)pfx_try_mean(&c->array[n], &strange);
  return !strange;
}

/* Memory, first values and what is wanted: 0 where there is no memory. An array that the routine may set before it
   reads it starts as no numbers; where these come through, it gets values. */
static int pfx_try_prepare(pfx_try_case *c, int how)
{
  int n, again = 0, found;
  for (n = 0; n < c->routine->arrays; n++) {
    pfx_try_array *const a = &c->array[n];
    if (!pfx_try_allocate(a)) return 0;
    if (a->use == PFX_TRY_READ || a->use == PFX_TRY_UPDATED) pfx_try_fill(a, n, c->routine->delicate);
    again |= a->use == PFX_TRY_MAYBE_SET;
  }
  found = pfx_try_want(c, how);
  if (found != 0 || !again) return found >= 0;
  for (n = 0; n < c->routine->arrays; n++)
    if (c->array[n].use == PFX_TRY_MAYBE_SET) pfx_try_fill(&c->array[n], n, c->routine->delicate);
  return pfx_try_want(c, how) >= 0;
}

static void pfx_try_release(pfx_try_case *c)
{
  int n;
  for (n = 0; n < c->routine->arrays; n++) free(c->array[n].memory);
}

static void pfx_try_print_sizes(const pfx_try_case *c)
{
  int n;
  for (n = 0; n < c->routine->sizes; n++) printf(" %s=%lld", c->routine->size[n], (long long)c->size[n]);
}

static void pfx_try_print_error(const pfx_try_error *e)
{
  const pfx_try_array *const a = e->array;
  const int digits = a->type == 'f' ? 9 : 17;
  int d;
  if (e->place) {
    printf(": writes %s %s\n", e->place, a->name);
    return;
  }
  printf(": %s[", a->name);
  for (d = 0; d < a->rank; d++) printf("%s%lld", d ? ", " : "", (long long)e->subscript[d]);
  printf("] is %.*g, not %.*g\n", digits, e->have, digits, e->want);
}

/* One call, checked; `worst` becomes the worst error of all calls. Says what is wrong and returns 0 where it is. */
static int pfx_try_check(pfx_try_case *c, const char *isa, int how, int32_t threads, double *worst)
{
  pfx_status status;
  pfx_try_error error;
  int64_t before;
  int n, d, beside;
  memset(&error, 0, sizeof error);
  if (!pfx_try_take_workspace(c, how, threads)) return 1;
  pfx_try_restart(c, PFX_TRY_HAVE, 1);
  status = c->routine->call(c, how, threads);
  for (n = 0; n < c->routine->arrays; n++) pfx_try_compare(&c->array[n], c->terms, &error);
  before = (unsigned char *)c->workspace - c->memory;
  beside = !pfx_try_is_untouched(c->memory, before) ||
           !pfx_try_is_untouched(c->memory + (size_t)(before + c->bytes), 3 * PFX_TRY_GUARD - before);
  free(c->memory);
  if (error.excess > *worst) *worst = error.excess;
  if (status == PFX_OK && !beside && error.excess <= 1.0) return 1;
  printf("    %s, %s, %d thread(s), workspace %s:", c->routine->name, isa, (int)threads, how == PFX_TRY_GIVEN ? "given" : "its own");
  pfx_try_print_sizes(c);
  for (n = 0; n < c->routine->arrays && c->round % 3 == 2; n++)
    for (d = 0; d < c->array[n].open; d++) printf(" (%s by %lld)", c->array[n].name, (long long)c->array[n].stride[d]);
  if (status != PFX_OK || beside) printf(": %s\n", beside ? "writes beside its workspace" : pfx_status_text(status));
  else pfx_try_print_error(&error);
  return 0;
}
