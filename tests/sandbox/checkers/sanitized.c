/* native.c under the sanitizers: compiled together with it, each text in memory of just its size.
 *
 * Reads the digits' table, then cases: which walk, the texts' lengths, whether case is folded, whether there is a
 * tolerance, the tolerance, the texts. Writes for each whether the texts part, and where. */

#include "native.c"

#include <stdio.h>
#include <stdlib.h>

struct given {
    int64_t walk, got_length, want_length, fold_case, near;
    struct tolerance tolerance;
};

static byte *text(int64_t length) {
    byte *bytes = malloc((size_t)length);
    if (fread(bytes, 1, (size_t)length, stdin) != (size_t)length) abort();
    return bytes;
}

int main(void) {
    byte *digit_of = text(0x20000);
    struct given given;
    while (fread(&given, sizeof given, 1, stdin) == 1) {
        const int64_t one = given.got_length, other = given.want_length;
        byte *got = text(one), *want = text(other);
        struct tolerance *tolerance = malloc(sizeof *tolerance);
        *tolerance = given.tolerance;
        struct place *place = malloc(sizeof *place);
        *place = (struct place){0};
        int64_t part = 0;
        switch (given.walk) {
            case 0: part = tokens_part(got, one, want, other, given.fold_case, given.near ? tolerance : NULL, place); break;
            case 1: part = lines_part(got, one, want, other, place); break;
            case 2: part = lcb_parts(got, one, want, other, digit_of, place); break;
            case 3: part = within(got, one, want, other, tolerance); break;
            case 4: part = common_prefix(got, want, one < other ? one : other, given.fold_case); break;
            case 5: part = plain_part(got, one, want, other, 0, 0, given.fold_case, given.near ? tolerance : NULL, place); break;
            default: part = count_tokens(got, one) + count_newlines(want, other);
        }
        fwrite(&part, sizeof part, 1, stdout);
        fwrite(place, sizeof *place, 1, stdout);
        free(got), free(want), free(tolerance), free(place);
    }
    free(digit_of);
    return 0;
}
