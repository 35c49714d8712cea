/* Partial vectors of at least one lane for instruction sets without masks, without a branch: a lane that is not there goes to
   the address of the last one that is. */
typedef int_of_T ints_T __attribute__((vector_size(sizeof(vec_T))));
typedef struct {
    int64_t at[LANES_T]; /* the smaller of the lane and the last lane */
    ints_T there;        /* all bits set in each lane that is there */
} tail_T;

INLINE tail_T tail_of_T(int64_t lanes)
{
    tail_T tail;
    ints_T number = {0};
    UNROLL
    for (int64_t l = 0; l < LANES_T; l++) {
        const int64_t beyond = lanes - 1 - l;
        tail.at[l] = l + (beyond & beyond >> 63); /* arithmetic: a branch would be copied into every loop that loads a tail */
        number[l] = (int_of_T)l;
    }
    tail.there = number < (int_of_T)lanes;
    return tail;
}


INLINE vec_T load_tail_T(const T *p, tail_T tail)
{
    vec_T x = zero_T();
    UNROLL
    for (int l = 0; l < LANES_T; l++)
        x[l] = (lane_of_T)p[tail.at[l]];
    return (vec_T)((ints_T)x & tail.there);
}

/* The last lane that is there is written after those beyond it. */
INLINE void store_tail_T(T *p, vec_T x, tail_T tail)
{
    UNROLL
    for (int l = LANES_T - 1; l >= 0; l--)
        p[tail.at[l]] = (T)x[l];
}
