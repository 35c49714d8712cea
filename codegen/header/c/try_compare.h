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
  int64_t n;
  for (n = 0; n < bytes; n++)
    if (at[n] != 0xFF) return 0;
  return 1;
}

/* The mean of the absolute values that the plain loops made, those that are finite; `strange` counts the others. */
static double pfx_try_mean(const pfx_try_array *a, int64_t *strange)
{
  int64_t subscript[PFX_TRY_RANK] = {0}, offset = 0, left = pfx_try_elements(a), finite = 0;
  double total = 0.0;
  for (; left > 0; left--, offset = pfx_try_next(a, subscript)) {
    const double value = fabs(pfx_try_get(a, pfx_try_at(a, PFX_TRY_WANT, offset)));
    if (!pfx_try_is_finite(value)) ++*strange;
    else total += value, finite++;
  }
  return finite > 0 ? total / (double)finite : 0.0;
}

/* The error of an element as a fraction of what is allowed. Integers are equal. Floats differ by `scale` at most,
   relative to the element and to the mean; where the plain loops made none that is finite, nothing is asked, but where
   they wrote nothing, nothing may be written. */
static double pfx_try_excess(const pfx_try_array *a, int64_t offset, double scale, double mean)
{
  const unsigned char *const want = pfx_try_at(a, PFX_TRY_WANT, offset), *const have = pfx_try_at(a, PFX_TRY_HAVE, offset);
  const double wanted = pfx_try_get(a, want), found = pfx_try_get(a, have);
  if (!pfx_try_is_float(a)) return memcmp(have, want, (size_t)a->width) ? DBL_MAX : 0.0;
  if (!pfx_try_is_finite(wanted))
    return pfx_try_is_untouched(want, a->width) && !pfx_try_is_untouched(have, a->width) ? DBL_MAX : 0.0;
  if (!pfx_try_is_finite(found)) return DBL_MAX;
  return fabs(found - wanted) / (scale * (fabs(wanted) + mean) + (a->type == 'f' ? (double)FLT_MIN : DBL_MIN));
}

/* The worst element, and behind it whether all else is untouched. Sums of n terms are allowed the rounding that they
   are expected to have, which grows with the root of n, some times over. */
static void pfx_try_compare(const pfx_try_array *a, int64_t terms, pfx_try_error *worst)
{
  int64_t subscript[PFX_TRY_RANK] = {0}, offset = 0, left = pfx_try_elements(a), strange = 0;
  const double mean = pfx_try_mean(a, &strange), rounding = a->type == 'f' ? (double)FLT_EPSILON : DBL_EPSILON;
  const double scale = PFX_TRY_SLACK * rounding * sqrt((double)terms);
  for (; left > 0; left--, offset = pfx_try_next(a, subscript)) {
    const double excess = pfx_try_excess(a, offset, scale, mean);
    if (excess > worst->excess) {
      worst->excess = excess;
      worst->array = a;
      memcpy(worst->subscript, subscript, sizeof subscript);
      worst->have = pfx_try_get(a, pfx_try_at(a, PFX_TRY_HAVE, offset));
      worst->want = pfx_try_get(a, pfx_try_at(a, PFX_TRY_WANT, offset));
    }
    memset(pfx_try_at(a, PFX_TRY_HAVE, offset), 0xFF, (size_t)a->width);
  }
}

/* Whether the kernel has written beside the elements, or to an array that it may only read; `compare` came before. */
static void pfx_try_see_guards(const pfx_try_array *a, pfx_try_error *worst)
{
  const unsigned char *const have = a->copy[PFX_TRY_HAVE];
  const char *place = NULL;
  if (a->use == PFX_TRY_READ) {
    if (memcmp(have, a->copy[PFX_TRY_START], (size_t)a->block)) place = "to";
  } else {
    if (!pfx_try_is_untouched(have, a->shift)) place = "before";
    if (!pfx_try_is_untouched(have + (size_t)a->shift, a->span)) place = "between the rows of";
    if (!pfx_try_is_untouched(have + (size_t)(a->shift + a->span), a->block - a->shift - a->span)) place = "behind";
  }
  if (!place) return;
  worst->excess = DBL_MAX;
  worst->array = a;
  worst->place = place;
}
