/* Calls that must be refused: each returns its status and changes nothing. */

static int pfx_try_refused(pfx_try_case *c, const char *what, const char *which, pfx_status status, int32_t threads)
{
  int how, n, right = 1;
  for (how = PFX_TRY_ALLOCATING; how <= PFX_TRY_GIVEN; how++) {
    const pfx_status found = c->routine->call(c, how, threads);
    if (found == status) continue;
    printf("    %s with %s %s returns \"%s\", not \"%s\"\n", c->routine->name, what, which, pfx_status_text(found),
           pfx_status_text(status));
    right = 0;
  }
  for (n = 0; n < c->routine->arrays; n++) {
    const pfx_try_array *const a = &c->array[n];
    if (!memcmp(a->copy[PFX_TRY_HAVE], a->copy[PFX_TRY_START], (size_t)a->block)) continue;
    printf("    %s with %s %s changes %s\n", c->routine->name, what, which, a->name);
    right = 0;
  }
  return right;
}

/* What is wrong with one array: null, misaligned, a bad stride, an output that overlaps another. */
static int pfx_try_refused_array(pfx_try_case *c, pfx_try_array *a)
{
  void *const data = a->data;
  int d, n, right;
  a->data = NULL;
  right = pfx_try_refused(c, "a null pointer as", a->name, PFX_NULL_POINTER, 1);
  a->data = (char *)data + 1;
  if (a->width > 1) right &= pfx_try_refused(c, "a misaligned", a->name, PFX_MISALIGNED, 1);
  for (n = 0; n < c->routine->arrays; n++) {
    a->data = c->array[n].data;
    if (a->use != PFX_TRY_READ && a != &c->array[n]) right &= pfx_try_refused(c, "an overlapping", a->name, PFX_OVERLAP, 1);
  }
  a->data = data;
  for (d = 0; d < a->rank; d++) {
    const int64_t told = a->told[d];
    a->told[d] = -1;
    if (a->open[d]) right &= pfx_try_refused(c, "a negative stride of", a->name, PFX_BAD_STRIDE, 1);
    a->told[d] = told - 1;
    if (a->open[d] && told > 1) right &= pfx_try_refused(c, "too short a stride of", a->name, PFX_BAD_STRIDE, 1);
    a->told[d] = told;
  }
  return right;
}

static int pfx_try_refused_all(pfx_try_case *c)
{
  int64_t size[PFX_TRY_SIZES] = {0};
  const int64_t *const sizes = c->size;
  int n, right = 1;
  for (n = 0; n < c->routine->arrays; n++) right &= pfx_try_refused_array(c, &c->array[n]);
  for (n = 0; n < c->routine->sizes; n++) size[n] = sizes[n];
  c->size = size;
  for (n = 0; n < c->routine->sizes; n++) {
    size[n] = -1;
    right &= pfx_try_refused(c, "a negative", c->routine->size[n], PFX_BAD_SIZE, 1);
    right &= c->routine->workspace_size(size, 1) == -(int64_t)PFX_BAD_SIZE;
    size[n] = sizes[n];
  }
  c->size = sizes;
  if (PFX_TRY_THREADS) right &= pfx_try_refused(c, "0", "threads", PFX_BAD_THREADS, 0);
  if (c->workspace_bytes > 0) {
    c->workspace_bytes--;
    right &= c->routine->call(c, PFX_TRY_GIVEN, 1) == PFX_WORKSPACE_TOO_SMALL;
    c->workspace_bytes++;
  }
  return right;
}

/* The first trial at which every array has some elements, or -1. */
static int pfx_try_plain_trial(const pfx_try_routine *routine, int64_t least)
{
  int trial, n;
  for (trial = 0; trial < routine->trials; trial++) {
    const pfx_try_case c = pfx_try_describe(routine, trial, 0);
    for (n = 0; n < routine->arrays && pfx_try_elements(&c.array[n]) >= least; n++) continue;
    if (n == routine->arrays) return trial;
  }
  return -1;
}

/* Whether the routine refuses what it must; it is told dense strides. */
static int pfx_try_refuses(const pfx_try_routine *routine)
{
  const int some = pfx_try_plain_trial(routine, 2), trial = some < 0 ? pfx_try_plain_trial(routine, 1) : some;
  pfx_try_case c;
  unsigned char *memory;
  int right = 1;
  if (trial < 0) return 1;
  c = pfx_try_describe(routine, trial, 4);
  if (pfx_try_prepare(&c, PFX_TRY_PLAIN)) {
    memory = pfx_try_workspace(&c, routine->workspace_size(c.size, 1));
    pfx_try_restart(&c, PFX_TRY_HAVE, 0);
    if (memory) right = pfx_try_refused_all(&c);
    free(memory);
  }
  pfx_try_release(&c);
  return right;
}
