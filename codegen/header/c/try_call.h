/* One routine at one trial's sizes: its arrays, what the plain loops make of them, and a checked call. */

/* How a routine is called: as plain loops, on a workspace of its own, on one that it is given. */
enum { PFX_TRY_PLAIN, PFX_TRY_ALLOCATING, PFX_TRY_GIVEN };

typedef struct pfx_try_case pfx_try_case;

typedef struct pfx_try_routine {
  const char *name;
  int sizes, arrays;
  int delicate, drifts; /* how its data must be; whether a call starts from what the last one left */
  const char *const *size;
  int trials;
  const int64_t *trial; /* of each: flops (0: not to be timed), how many terms a sum has, and the sizes */
  void (*describe)(const int64_t *size, pfx_try_array *array);
  int64_t (*scratch)(const int64_t *size);
  int64_t (*workspace_size)(const int64_t *size, int32_t threads);
  pfx_status (*call)(const pfx_try_case *c, int how, int32_t threads);
} pfx_try_routine;

struct pfx_try_case {
  const pfx_try_routine *routine;
  const int64_t *size;
  int64_t flops, terms, round;
  pfx_try_array array[PFX_TRY_ARRAYS];
  void *workspace;
  int64_t workspace_bytes;
};

typedef struct pfx_try_setting {
  const char *isa;
  int how;
  int32_t threads;
} pfx_try_setting;

/* The arrays' shapes at a trial; nothing is allocated yet. */
static pfx_try_case pfx_try_describe(const pfx_try_routine *routine, int trial, int64_t round)
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

static void pfx_try_print_sizes(const pfx_try_case *c)
{
  int n;
  for (n = 0; n < c->routine->sizes; n++) printf(" %s=%lld", c->routine->size[n], (long long)c->size[n]);
}

/* A workspace with all bits set and a guard on either side, at any address that the round comes to. */
static unsigned char *pfx_try_workspace(pfx_try_case *c, int64_t bytes)
{
  unsigned char *const memory = pfx_try_memory(bytes + 2 * PFX_TRY_GUARD + 64);
  if (!memory) return NULL;
  c->workspace = bytes > 0 ? memory + (size_t)(PFX_TRY_GUARD + c->round % 5) : NULL;
  c->workspace_bytes = bytes;
  return memory;
}

/* Takes one copy of the arrays for the next call; what is only read stays what it is in the plain loops. */
static void pfx_try_take(pfx_try_case *c, int copy)
{
  int n;
  for (n = 0; n < c->routine->arrays; n++) {
    pfx_try_array *const a = &c->array[n];
    a->data = pfx_try_at(a, copy == PFX_TRY_WANT && a->use == PFX_TRY_READ ? PFX_TRY_START : copy, 0);
  }
}

/* Gives the arrays in one copy their first values; `written` ones alone, or all. */
static void pfx_try_restart(pfx_try_case *c, int copy, int written)
{
  int n;
  for (n = 0; n < c->routine->arrays; n++) {
    const pfx_try_array *const a = &c->array[n];
    if (a->use != PFX_TRY_READ || !written) memcpy(a->copy[copy], a->copy[PFX_TRY_START], (size_t)a->block);
  }
  pfx_try_take(c, copy);
}

/* Lets the plain loops, or the kernels in use, make what is wanted. -1: no memory; else whether all of it is finite. */
static int pfx_try_want(pfx_try_case *c, int how)
{
  const int64_t bytes = how == PFX_TRY_PLAIN ? c->routine->scratch(c->size) : 0;
  unsigned char *const memory = pfx_try_memory(bytes + 64);
  int64_t strange = 0;
  int n;
  if (!memory) return -1;
  c->workspace = memory + (size_t)(-(uintptr_t)memory & 63u);
  pfx_try_restart(c, PFX_TRY_WANT, 1);
  if (c->routine->call(c, how, 1) != PFX_OK) strange = -1;
  free(memory);
  for (n = 0; n < c->routine->arrays && strange >= 0; n++)
    if (c->array[n].use != PFX_TRY_READ) (void)pfx_try_mean(&c->array[n], &strange);
  return strange < 0 ? -1 : strange == 0;
}

/* Memory, first values and what is wanted: 0 where there is no memory. An array that the routine may write before it
   reads it starts as no numbers; where these come through, it gets values. */
static int pfx_try_prepare(pfx_try_case *c, int how)
{
  int n, maybe_fresh = 0, found;
  for (n = 0; n < c->routine->arrays; n++) {
    pfx_try_array *const a = &c->array[n];
    if (!pfx_try_allocate(a)) return 0;
    if (a->use == PFX_TRY_READ || a->use == PFX_TRY_UPDATED) pfx_try_fill(a, n, c->routine->delicate);
    maybe_fresh |= a->use == PFX_TRY_MAYBE_FRESH;
  }
  found = pfx_try_want(c, how);
  if (found != 0 || !maybe_fresh) return found >= 0;
  for (n = 0; n < c->routine->arrays; n++)
    if (c->array[n].use == PFX_TRY_MAYBE_FRESH) pfx_try_fill(&c->array[n], n, c->routine->delicate);
  return pfx_try_want(c, how) >= 0;
}

static void pfx_try_release(pfx_try_case *c)
{
  int n;
  for (n = 0; n < c->routine->arrays; n++) free(c->array[n].memory);
}

static void pfx_try_print_error(const pfx_try_case *c, const pfx_try_setting *s, const pfx_try_error *e)
{
  const int digits = e->array->type == 'd' ? 17 : 9;
  int d;
  printf("    %s on %s, %d thread(s), %s, at", c->routine->name, s->isa, (int)s->threads,
         s->how == PFX_TRY_GIVEN ? "workspace given" : "workspace allocated");
  pfx_try_print_sizes(c);
  for (d = 0; d < e->array->rank; d++)
    if (e->array->open[d])
      printf(" (stride %lld of %s: %lld)", (long long)d, e->array->name, (long long)e->array->stride[d]);
  if (e->place) {
    printf(": writes %s %s\n", e->place, e->array->name);
    return;
  }
  printf(": %s[", e->array->name);
  for (d = 0; d < e->array->rank; d++) printf(d ? ", %lld" : "%lld", (long long)e->subscript[d]);
  printf("] is %.*g, not %.*g\n", digits, e->have, digits, e->want);
}

/* One call, checked; `worst` becomes the worst error of all calls. Says what is wrong and returns 0 where it is. */
static int pfx_try_check(pfx_try_case *c, const pfx_try_setting *s, double *worst)
{
  const int64_t bytes = s->how == PFX_TRY_GIVEN ? c->routine->workspace_size(c->size, s->threads) : 0;
  unsigned char *const memory = pfx_try_workspace(c, bytes > 0 ? bytes : 0);
  const int64_t before = PFX_TRY_GUARD + c->round % 5;
  pfx_status status;
  pfx_try_error error;
  int n;
  memset(&error, 0, sizeof error);
  if (!memory) return 1;
  pfx_try_restart(c, PFX_TRY_HAVE, 0);
  status = c->routine->call(c, s->how, s->threads);
  for (n = 0; n < c->routine->arrays; n++)
    if (c->array[n].use != PFX_TRY_READ) pfx_try_compare(&c->array[n], c->terms, &error);
  for (n = 0; n < c->routine->arrays; n++) pfx_try_see_guards(&c->array[n], &error);
  n = pfx_try_is_untouched(memory, before) &&
      pfx_try_is_untouched(memory + (size_t)(before + c->workspace_bytes), PFX_TRY_GUARD);
  free(memory);
  if (error.excess > *worst) *worst = error.excess;
  if (status == PFX_OK && n && error.excess <= 1.0) return 1;
  if (status != PFX_OK || !n) {
    printf("    %s on %s, %d thread(s), at", c->routine->name, s->isa, (int)s->threads);
    pfx_try_print_sizes(c);
    printf(": %s\n", n ? pfx_status_text(status) : "writes beside its workspace");
  } else {
    pfx_try_print_error(c, s, &error);
  }
  return 0;
}
