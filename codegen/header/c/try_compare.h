/* Whether a kernel has made the same of its arrays as the plain loops, and has written nothing else. */

#define PFX_TRY_SLACK 32.0 /* how many times the rounding that a sum is expected to have is allowed */

typedef struct pfx_try_error {
  double excess; /* the largest error, as a fraction of what is allowed: more than 1 is wrong */
  const pfx_try_array *array;
  int64_t subscript[PFX_TRY_RANK];
  double have, want;
  const char *place; /* where something was written that must not be, if it was */
} pfx_try_error;

static int pfx_try_is_finite(double value) { return fabs(value) <= DBL_MAX; }

/* Whether all bits are set, as nobody but us leaves them. */
static int pfx_try_is_untouched(const unsigned char *at, int64_t bytes)
{
  while (bytes > 0 && *at == 0xFF) at++, bytes--;
  return bytes <= 0;
}

/* The mean of the absolute values that the plain loops made, those that are finite; `strange` counts the others. */
static double pfx_try_mean(const pfx_try_array *a, int64_t *strange)
{
  int64_t subscript[PFX_TRY_RANK] = {0}, offset = 0, left = a->elements, finite = 0;
  double total = 0.0;
  for (; left > 0; left--, offset = pfx_try_next(a, subscript)) {
    const double value = fabs(pfx_try_get(a, PFX_TRY_WANT, offset));
    if (pfx_try_is_finite(value)) total += value, finite++;
    else ++*strange;
  }
  return finite > 0 ? total / (double)finite : 0.0;
}

/* The error of an element as a fraction of what is allowed. Integers are equal. Floats differ by `scale` at most,
   relative to the element and to the mean. Where the plain loops made none that is finite, nothing is asked; where they
   wrote nothing, nothing may be written. */
static double pfx_try_excess(const pfx_try_array *a, int64_t offset, double scale, double mean)
{
  const unsigned char *const want = pfx_try_at(a, PFX_TRY_WANT, offset), *const have = pfx_try_at(a, PFX_TRY_HAVE, offset);
  const double wanted = pfx_try_get(a, PFX_TRY_WANT, offset), found = pfx_try_get(a, PFX_TRY_HAVE, offset);
  if (!memcmp(have, want, (size_t)a->width)) return 0.0;
  if (!pfx_try_is_float(a)) return DBL_MAX;
  if (!pfx_try_is_finite(wanted)) return pfx_try_is_untouched(want, a->width) ? DBL_MAX : 0.0;
  if (!pfx_try_is_finite(found)) return DBL_MAX;
  return fabs(found - wanted) / (scale * (fabs(wanted) + mean) + (a->type == 'f' ? (double)FLT_MIN : DBL_MIN));
}

/* The worst element, and whether all else is as it was. A sum of n terms is allowed the rounding that it is expected to
   have, which grows with the root of n, some times over. */
static void pfx_try_compare(const pfx_try_array *a, int64_t terms, pfx_try_error *worst)
{
  int64_t subscript[PFX_TRY_RANK] = {0}, offset = 0, strange = 0, left = a->use == PFX_TRY_READ ? 0 : a->elements;
  const double mean = left ? pfx_try_mean(a, &strange) : 0.0;
  const double scale = PFX_TRY_SLACK * (a->type == 'f' ? (double)FLT_EPSILON : DBL_EPSILON) * sqrt((double)terms);
  unsigned char *const have = a->copy[PFX_TRY_HAVE];
  const char *place = NULL;
  for (; left > 0; left--, offset = pfx_try_next(a, subscript)) {
    const double excess = pfx_try_excess(a, offset, scale, mean);
    if (excess > worst->excess) {
      worst->excess = excess;
      worst->array = a;
      memcpy(worst->subscript, subscript, sizeof subscript);
      worst->have = pfx_try_get(a, PFX_TRY_HAVE, offset);
      worst->want = pfx_try_get(a, PFX_TRY_WANT, offset);
    }
    memset(have + (size_t)(a->shift + offset), 0xFF, (size_t)a->width);
  }
  if (a->use == PFX_TRY_READ) {
    if (memcmp(have, a->copy[PFX_TRY_START], (size_t)a->block)) place = "to";
  } else if (!pfx_try_is_untouched(have, a->block)) {
    place = !pfx_try_is_untouched(have, a->shift) ? "before"
          : !pfx_try_is_untouched(have + (size_t)a->shift, a->span) ? "between the rows of" : "behind";
  }
  if (!place) return;
  worst->excess = DBL_MAX;
  worst->array = a;
  worst->place = place;
}
