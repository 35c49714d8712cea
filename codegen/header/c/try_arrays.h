/* The arrays of a self-test: their layout, memory with guards around it, and values. */

#define PFX_TRY_GUARD 128 /* bytes before and behind each array */

/* What a routine does to an array: reads it, sets it, updates it, or may set it before it reads it. */
enum { PFX_TRY_READ, PFX_TRY_SET, PFX_TRY_UPDATED, PFX_TRY_MAYBE_SET };

/* The copies of an array: first values, what the kernel makes of them, what the plain loops do. */
enum { PFX_TRY_START, PFX_TRY_HAVE, PFX_TRY_WANT };

typedef struct pfx_try_array {
  const char *name;
  char type; /* f: float, d: double, b: int8_t, i: int32_t, l: int64_t */
  int use, rank, open; /* a call is told the first `open` strides */
  int64_t extent[PFX_TRY_RANK], stride[PFX_TRY_RANK], told[PFX_TRY_RANK];
  int64_t elements, width, shift, span, block; /* bytes of an element, before the array, of it, of a copy */
  unsigned char *memory, *copy[3];
  void *data; /* the array that a call gets */
} pfx_try_array;

typedef union pfx_try_value {
  float f;
  double d;
  int8_t b;
  int32_t i;
  int64_t l;
} pfx_try_value;

static int pfx_try_is_float(const pfx_try_array *a) { return a->type == 'f' || a->type == 'd'; }

/* By turns, strides are dense and told as 0, dense and told, or with gaps; the start is aligned to 64, or just so. */
static void pfx_try_lay_out(pfx_try_array *a, int number, int round)
{
  int64_t within = 1;
  int d;
  a->elements = 1;
  a->width = a->type == 'b' ? 1 : a->type == 'f' || a->type == 'i' ? 4 : 8;
  a->span = a->width;
  for (d = a->rank - 1; d >= 0; d--) {
    a->stride[d] = within + (d < a->open && round % 3 == 2 ? (round / 3 + number) % 4 : 0);
    a->told[d] = round % 3 ? a->stride[d] : 0;
    a->elements *= a->extent[d];
    a->span += (a->extent[d] - 1) * a->stride[d] * a->width;
    within = a->stride[d] * (a->extent[d] > 1 ? a->extent[d] : 1);
  }
  if (!a->elements) a->span = 0;
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

/* Takes the subscripts to the next element, in row-major order; returns its offset from the first, in bytes. */
static int64_t pfx_try_next(const pfx_try_array *a, int64_t *subscript)
{
  int64_t offset = 0;
  int d = a->rank - 1;
  while (d >= 0 && ++subscript[d] == a->extent[d]) subscript[d--] = 0;
  for (d = 0; d < a->rank; d++) offset += subscript[d] * a->stride[d] * a->width;
  return offset;
}

static unsigned char *pfx_try_at(const pfx_try_array *a, int copy, int64_t offset)
{
  return a->copy[copy] + (size_t)(a->shift + offset);
}

static double pfx_try_get(const pfx_try_array *a, int copy, int64_t offset)
{
  pfx_try_value v;
  memcpy(&v, pfx_try_at(a, copy, offset), (size_t)a->width);
  return a->type == 'f' ? (double)v.f : a->type == 'd' ? v.d
       : a->type == 'b' ? (double)v.b : a->type == 'i' ? (double)v.i : (double)v.l;
}

static void pfx_try_set(const pfx_try_array *a, int64_t offset, double value)
{
  pfx_try_value v;
  if (a->type == 'f') v.f = (float)value;
  else if (a->type == 'd') v.d = value;
  else if (a->type == 'b') v.b = (int8_t)value;
  else if (a->type == 'i') v.i = (int32_t)value;
  else v.l = (int64_t)value;
  memcpy(pfx_try_at(a, PFX_TRY_START, offset), &v, (size_t)a->width);
}

/* First values: floats of [-1, 1), integers of [-3, 3]. For a delicate routine, which divides by them or takes roots,
   floats of [0.5, 1.5), and the diagonal of a square outweighs its rows. */
static void pfx_try_fill(const pfx_try_array *a, int seed, int delicate)
{
  uint64_t state = UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)(seed + 1);
  int64_t subscript[PFX_TRY_RANK] = {0}, offset = 0, left = a->elements;
  const int last = a->rank - 1, square = last > 0 && a->extent[last] == a->extent[last - 1];
  for (; left > 0; left--, offset = pfx_try_next(a, subscript)) {
    double drawn, value;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    drawn = (double)(state >> 11) / 9007199254740992.0;
    value = delicate ? drawn + 0.5 : 2.0 * drawn - 1.0;
    if (!pfx_try_is_float(a)) value = floor(7.0 * drawn) - 3.0;
    else if (delicate && square && subscript[last] == subscript[last - 1]) value = 2.0 * (double)a->extent[last];
    pfx_try_set(a, offset, value);
  }
}
