typedef int64_t tail_T; /* how many lanes of a partial vector are there, at least one */
INLINE tail_T tail_of_T(int64_t lanes) { return lanes; }
#define load_tail_T(p, tail) \
    (vec_T)( \
        EACH_LANE_OF_P)
#define store_tail_T(p, x, tail) \
    do { \
        T lane_of_x[LANES_T]; \
        store_T(lane_of_x, x); \
        for (int at_lane = 0; at_lane < (tail); at_lane++) \
            (p)[at_lane] = lane_of_x[at_lane]; \
    } while (0)
