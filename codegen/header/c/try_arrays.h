/* The arrays of a self-test: their layout, memory with guards around it, and values. */

#define PFX_TRY_GUARD 128 /* bytes before and behind each array */

/* What a routine does to an array; the last is written before it is read, or so it may be. */
enum { PFX_TRY_READ, PFX_TRY_SET, PFX_TRY_UPDATED, PFX_TRY_MAYBE_FRESH };

/* The copies of an array: first values, what the kernel makes of them, and what the plain loops do. */
enum { PFX_TRY_START, PFX_TRY_HAVE, PFX_TRY_WANT };

typedef struct pfx_try_array {
  const char *name;
  char type; /* f: float, d: double, b: int8_t, i: int32_t, l: int64_t */
  int use, rank;
  int open[PFX_TRY_RANK]; /* whether a call is told the stride */
  int64_t extent[PFX_TRY_RANK], stride[PFX_TRY_RANK], told[PFX_TRY_RANK];
  int64_t width, span, block; /* bytes of an element, of the array with its gaps, of a copy */
  int64_t shift;              /* bytes from the start of a copy to the array */
  unsigned char *memory, *copy[3];
  void *data; /* the array that a call gets */
} pfx_try_array;

static pfx_try_array pfx_try_new(const char *name, char type, int use, int rank)
{
  pfx_try_array a;
  memset(&a, 0, sizeof a);
  a.name = name;
  a.type = type;
  a.use = use;
  a.rank = rank;
  a.width = type == 'b' ? 1 : type == 'f' || type == 'i' ? 4 : 8;
  return a;
}

static int pfx_try_is_float(const pfx_try_array *a) { return a->type == 'f' || a->type == 'd'; }

static int64_t pfx_try_elements(const pfx_try_array *a)
{
  int64_t count = 1;
  int d;
  for (d = 0; d < a->rank; d++) count *= a->extent[d];
  return count;
}

/* By turns, strides are dense and told as 0, dense and told, or with gaps; the start is aligned to 64, or just so. */
static void pfx_try_lay_out(pfx_try_array *a, int64_t number, int64_t round)
{
  int64_t within = 1;
  int d;
  for (d = a->rank - 1; d >= 0; d--) {
    a->stride[d] = within + (a->open[d] && round % 3 == 2 ? (round / 3 + number) % 4 : 0);
    a->told[d] = round % 3 == 0 ? 0 : a->stride[d];
    within = a->stride[d] * (a->extent[d] > 1 ? a->extent[d] : 1);
  }
  a->span = pfx_try_elements(a) > 0 ? a->width : 0;
  for (d = 0; d < a->rank && a->span > 0; d++) a->span += (a->extent[d] - 1) * a->stride[d] * a->width;
  a->shift = PFX_TRY_GUARD + (round % 2 ? a->width : 0);
  a->block = (a->shift + a->span + PFX_TRY_GUARD + 63) / 64 * 64;
}

/* Memory with all bits set: to who reads it as floating-point numbers, none. Null where there isn't as much. */
static unsigned char *pfx_try_memory(int64_t bytes)
{
  unsigned char *memory = (uint64_t)bytes < SIZE_MAX / 2 ? (unsigned char *)malloc((size_t)bytes) : NULL;
  if (memory) memset(memory, 0xFF, (size_t)bytes);
  return memory;
}

static int pfx_try_allocate(pfx_try_array *a)
{
  const int copies = a->use == PFX_TRY_READ ? 2 : 3;
  int c;
  a->memory = pfx_try_memory(a->block * copies + 64);
  for (c = 0; c < copies && a->memory; c++)
    a->copy[c] = a->memory + (size_t)(-(uintptr_t)a->memory & 63u) + (size_t)(a->block * c);
  return a->memory != NULL;
}

/* Takes the subscripts to the next element, in row-major order; returns its offset from the first. */
static int64_t pfx_try_next(const pfx_try_array *a, int64_t *subscript)
{
  int64_t offset = 0;
  int d = a->rank - 1;
  while (d >= 0 && ++subscript[d] == a->extent[d]) subscript[d--] = 0;
  for (d = 0; d < a->rank; d++) offset += subscript[d] * a->stride[d];
  return offset;
}

static unsigned char *pfx_try_at(const pfx_try_array *a, int copy, int64_t offset)
{
  return a->copy[copy] + (size_t)(a->shift + offset * a->width);
}

static double pfx_try_get(const pfx_try_array *a, const unsigned char *at)
{
  float f;
  double d;
  int8_t b;
  int32_t i;
  int64_t l;
  switch (a->type) {
  case 'f': memcpy(&f, at, sizeof f); return (double)f;
  case 'd': memcpy(&d, at, sizeof d); return d;
  case 'b': memcpy(&b, at, sizeof b); return (double)b;
  case 'i': memcpy(&i, at, sizeof i); return (double)i;
  default: memcpy(&l, at, sizeof l); return (double)l;
  }
}

static void pfx_try_put(const pfx_try_array *a, unsigned char *at, double value)
{
  const float f = (float)value;
  const int64_t l = pfx_try_is_float(a) ? 0 : (int64_t)value;
  const int32_t i = (int32_t)l;
  const int8_t b = (int8_t)l;
  switch (a->type) {
  case 'f': memcpy(at, &f, sizeof f); break;
  case 'd': memcpy(at, &value, sizeof value); break;
  case 'b': memcpy(at, &b, sizeof b); break;
  case 'i': memcpy(at, &i, sizeof i); break;
  default: memcpy(at, &l, sizeof l); break;
  }
}

/* One of 2^24 fractions from 0 up to 1, from the top bits of a word that is shifted onto itself thrice. */
static double pfx_try_fraction(uint64_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (double)(*state >> 40) / 16777216.0;
}

/* First values: floats of [-1, 1), integers of [-3, 3]. For a delicate routine, which divides by them or takes roots,
   floats of [0.5, 1.5), and the diagonal of a square outweighs its rows. */
static void pfx_try_fill(const pfx_try_array *a, int64_t seed, int delicate)
{
  uint64_t state = UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)(seed + 1);
  int64_t subscript[PFX_TRY_RANK] = {0}, offset = 0, left = pfx_try_elements(a);
  const int last = a->rank - 1, square = last > 0 && a->extent[last] == a->extent[last - 1];
  for (; left > 0; left--, offset = pfx_try_next(a, subscript)) {
    const double drawn = pfx_try_fraction(&state);
    double value = delicate ? drawn + 0.5 : 2.0 * drawn - 1.0;
    if (!pfx_try_is_float(a)) value = floor(7.0 * drawn) - 3.0;
    else if (delicate && square && subscript[last] == subscript[last - 1]) value = 2.0 * (double)a->extent[last];
    pfx_try_put(a, pfx_try_at(a, PFX_TRY_START, offset), value);
  }
}
