/* Calls that must be refused: each returns its status and changes nothing. */

static int pfx_try_refused(pfx_try_case *c, const char *what, const char *name, pfx_status status, int32_t threads)
{
  int how, n, right = 1;
  for (how = PFX_TRY_GIVEN; how <= PFX_TRY_ALLOCATING; how++) {
    const pfx_status found = c->routine->call(c, how, threads);
    int changed = 0;
    for (n = 0; n < c->routine->arrays; n++)
      changed |= memcmp(c->array[n].copy[PFX_TRY_HAVE], c->array[n].copy[PFX_TRY_START], (size_t)c->array[n].block);
    if (found == status && !changed) continue;
    printf("    %s with %s %s: status \"%s\", not \"%s\"%s\n", c->routine->name, what, name, pfx_status_text(found),
           pfx_status_text(status), changed ? ", and arrays are changed" : "");
    right = 0;
  }
  return right;
}

/* What can be wrong with one array: null, misaligned, a bad stride, an output that overlaps another. */
static int pfx_try_refused_array(pfx_try_case *c, pfx_try_array *a)
{
  void *const data = a->data;
  int d, n, right;
  a->data = NULL;
  right = pfx_try_refused(c, "null for", a->name, PFX_NULL_POINTER, 1);
  a->data = (char *)data + 1;
  if (a->width > 1) right &= pfx_try_refused(c, "a misaligned", a->name, PFX_MISALIGNED, 1);
  for (n = 0; n < c->routine->arrays; n++) {
    a->data = c->array[n].data;
    if (a->use != PFX_TRY_READ && a != &c->array[n]) right &= pfx_try_refused(c, "an overlapping", a->name, PFX_OVERLAP, 1);
  }
  a->data = data;
  for (d = 0; d < a->open; d++) {
    const int64_t told = a->told[d];
    a->told[d] = told > 1 ? told - 1 : -1;
    right &= pfx_try_refused(c, "too short a stride for", a->name, PFX_BAD_STRIDE, 1);
    a->told[d] = told;
  }
  return right;
}

/* Whether the kernel in use needs a workspace at all; another one may where it does not. */
static int pfx_try_takes_memory(pfx_try_case *c)
{
  void *const workspace = c->workspace;
  pfx_status status;
  c->workspace = NULL;
  status = c->routine->call(c, PFX_TRY_GIVEN, 1);
  c->workspace = workspace;
  return status != PFX_OK;
}

/* Whether a routine refuses what it must; arrays have some elements, and dense strides are told. */
static int pfx_try_refuses(const pfx_try_routine *routine)
{
  int64_t size[PFX_TRY_SIZES + 1];
  int trial = 0, n, right = 1;
  pfx_try_case c;
  do {
    if (trial == routine->trials) return 1;
    c = pfx_try_describe(routine, trial++, 4);
    for (n = 0; n < routine->arrays && c.array[n].elements > 1; n++) continue;
  } while (n < routine->arrays && routine->trials > 1);
  if (pfx_try_prepare(&c, PFX_TRY_PLAIN) && pfx_try_take_workspace(&c, PFX_TRY_GIVEN, 1)) {
    memcpy(size, c.size, sizeof size[0] * (size_t)routine->sizes);
    c.size = size;
    pfx_try_restart(&c, PFX_TRY_HAVE, 1);
    for (n = 0; n < routine->arrays; n++) right &= pfx_try_refused_array(&c, &c.array[n]);
    for (n = 0; n < routine->sizes; n++) {
      const int64_t value = size[n];
      size[n] = -1;
      right &= pfx_try_refused(&c, "a negative", routine->size[n], PFX_BAD_SIZE, 1);
      size[n] = value;
    }
    if (PFX_TRY_THREADS) right &= pfx_try_refused(&c, "no", "threads", PFX_BAD_THREADS, 0);
    c.bytes--;
    if (c.bytes >= 0 && pfx_try_takes_memory(&c) && routine->call(&c, PFX_TRY_GIVEN, 1) != PFX_WORKSPACE_TOO_SMALL) {
      printf("    %s takes too small a workspace\n", routine->name);
      right = 0;
    }
    free(c.memory);
  }
  pfx_try_release(&c);
  return right;
}
