/* native: two texts compared in place, as `sandbox.checkers.compare` says each checker compares them.
 *
 * Both texts lie in memory, the output as a mapping of what a stranger wrote. Nothing is copied or allocated and no
 * function calls itself, so memory does not depend on them; no walk goes back further than the token or line that it
 * then leaves behind, so time is linear in them, whatever they hold.
 *
 * All walks have one shape: pass over bytes that are equal, eight at a time and whatever they mean, and look at layout,
 * case and numbers only where the texts part. What was passed is the same in both, so the token or line that the walk
 * stands in is found by going back in it.
 *
 * In C because it was measured: Python, even on blocks of whole tokens, takes up to a minute for 64 MB of numbers
 * written otherwise (docs/decisions.md). Called through ctypes (sandbox/checkers/native.py). It must not fail: there is
 * nothing in here that can, and tests/sandbox/test_native.py runs it under the sanitizers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "equal_run counts equal bytes from the low end of a word");

/* Kept out of the functions that call it, whose loops are the faster for it. */
#define RARE __attribute__((noinline, cold))

typedef uint8_t byte;

enum {
    /* A longer token is text: far beyond any number that a program prints. */
    MAX_NUMBER_BYTES = 64 * 1024,
    /* Any number of so many digits fits in 64 bits. */
    KEPT_DIGITS = 19,
};

/* Where the texts part: a token or line of each, as offsets; a start of -1 says that the text has ended. */
struct place {
    int64_t got_start, got_end, want_start, want_end;
};

struct tolerance {
    double absolute, relative;
    /* The same as decimal numbers, digits times a power of ten; there are fewer than 18 digits. */
    int64_t absolute_digits, absolute_exponent, relative_digits, relative_exponent;
};

/* -- runs of equal bytes */

static size_t least(size_t one, size_t other) { return one < other ? one : other; }

static size_t equal_run(const byte *one, const byte *other, size_t length) {
    size_t at = 0;
    for (; length - at >= 8; at += 8) {
        uint64_t a, b;
        memcpy(&a, one + at, 8);
        memcpy(&b, other + at, 8);
        if (a != b) return at + (size_t)__builtin_ctzll(a ^ b) / 8;
    }
    while (at < length && one[at] == other[at]) at++;
    return at;
}

static byte lower(byte c) { return (byte)(c - 'A') < 26 ? c | 0x20 : c; }

static size_t equal_run_but_case(const byte *one, const byte *other, size_t length) {
    size_t at = 0;
    while (at < length && lower(one[at]) == lower(other[at])) at++;
    return at;
}

int64_t common_prefix(const byte *one, const byte *other, int64_t length, bool fold_case) {
    return (int64_t)(fold_case ? equal_run_but_case : equal_run)(one, other, (size_t)length);
}

/* -- whitespace: ASCII's, or `wide`, that of Python's str */

enum { PLAIN = 1, WIDE = 2, LEAD = 3 };

/* By its first byte, whether a character is whitespace: everywhere, in wide texts, or perhaps in those. */
static const byte SPACE[256] = {
    ['\t'] = PLAIN, ['\n'] = PLAIN, ['\v'] = PLAIN, ['\f'] = PLAIN, ['\r'] = PLAIN, [0x1C] = WIDE, [0x1D] = WIDE,
    [0x1E] = WIDE,  [0x1F] = WIDE,  [' '] = PLAIN,  [0xC2] = LEAD,  [0xE1] = LEAD,  [0xE2] = LEAD, [0xE3] = LEAD,
};

static inline bool is_space(byte c) { return SPACE[c] == PLAIN; }

/* Length of the whitespace character that begins with a LEAD here, or 0. */
RARE static size_t lead_space_at(const byte *at, const byte *end) {
    if (*at == 0xC2) return end - at >= 2 && (at[1] == 0x85 || at[1] == 0xA0) ? 2 : 0;
    if (end - at < 3) return 0;
    unsigned rest = (unsigned)at[1] << 8 | at[2];
    bool found = *at == 0xE1   ? rest == 0x9A80 /* U+1680 */
                 : *at == 0xE3 ? rest == 0x8080 /* U+3000 */
                               /* U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F */
                               : (rest >= 0x8080 && rest <= 0x808A) || rest == 0x80A8 || rest == 0x80A9 ||
                                     rest == 0x80AF || rest == 0x819F;
    return found ? 3 : 0;
}

/* Length of the whitespace character that begins here, before the end, or 0. */
static inline size_t space_at(const byte *at, const byte *end, bool wide) {
    byte kind = SPACE[*at];
    if (kind == LEAD) return wide ? lead_space_at(at, end) : 0;
    return kind == PLAIN || (wide && kind == WIDE);
}

static inline bool ends_token(const byte *at, const byte *end, bool wide) {
    return at == end || space_at(at, end, wide) != 0;
}

static inline const byte *skip_token(const byte *at, const byte *end, bool wide) {
    while (!ends_token(at, end, wide)) at++;
    return at;
}

/* `stop` is a byte that is not passed, or -1. */
static inline const byte *skip_space_to(const byte *at, const byte *end, bool wide, int stop) {
    while (at < end && *at != stop) {
        if (SPACE[*at] == PLAIN) {
            at++;
            continue;
        }
        size_t length = wide ? space_at(at, end, wide) : 0;
        if (length == 0) break;
        at += length;
    }
    return at;
}

static inline const byte *skip_space(const byte *at, const byte *end, bool wide) {
    return skip_space_to(at, end, wide, -1);
}

static inline const byte *skip_blank(const byte *at, const byte *end, bool wide) {
    return skip_space_to(at, end, wide, '\n');
}

/* The end of [begin, end) without the whitespace at its end. The first byte of a character stands nowhere else in one,
 * so that bytes that read as whitespace are just that, among invalid ones, too. */
static inline const byte *strip_end(const byte *begin, const byte *end, bool wide) {
    while (end > begin) {
        if (space_at(end - 1, end, wide) == 1)
            end--;
        else if (wide && end - begin >= 2 && space_at(end - 2, end, wide) == 2)
            end -= 2;
        else if (wide && end - begin >= 3 && space_at(end - 3, end, wide) == 3)
            end -= 3;
        else
            break;
    }
    return end;
}

/* -- numbers */

/* The digits from the first that is not 0 up to behind the last that is not 0; a point, and where LiveCodeBench's rule
 * reads them underscores and digits of other scripts, may stand among them. Empty: the number is 0. */
struct number {
    const byte *digits, *end;
    /* The power of ten of the first digit. */
    int64_t top;
    /* How many digits there are from the first that is not 0 on, zeros at the end included, and the integer that these,
     * or the first KEPT_DIGITS of them, make. */
    int64_t count;
    uint64_t kept;
    bool negative, infinite;
};

static bool is_zero(const struct number *number) { return number->digits == number->end; }

struct reader {
    const byte *at, *end;
    /* By code point below 0x20000: the digit that it is, or 255. NULL where only ASCII is read. */
    const byte *digit_of;
};

/* What `next` gives besides ASCII: the end, and a character that no number holds, which it does not pass. */
enum { END = -1, OTHER = -2 };

/* The next character, underscores passed over and digits turned into ASCII. */
__attribute__((noinline)) static int next_of_any_script(struct reader *r) {
    while (r->at < r->end && *r->at == '_') r->at++;
    if (r->at == r->end) return END;
    const byte *c = r->at;
    ptrdiff_t left = r->end - c;
    uint32_t point, length;
    if (c[0] < 0x80) {
        r->at++;
        return c[0];
    }
    if (c[0] >= 0xC2 && c[0] < 0xE0 && left >= 2 && c[1] >> 6 == 2) {
        point = (c[0] & 0x1Fu) << 6 | (c[1] & 0x3Fu);
        length = 2;
    } else if (c[0] >> 4 == 0xE && left >= 3 && c[1] >> 6 == 2 && c[2] >> 6 == 2) {
        point = (c[0] & 0x0Fu) << 12 | (c[1] & 0x3Fu) << 6 | (c[2] & 0x3Fu);
        length = 3;
        if (point < 0x800) return OTHER;
    } else if (c[0] == 0xF0 && left >= 4 && c[1] >> 6 == 2 && c[2] >> 6 == 2 && c[3] >> 6 == 2) {
        point = (c[1] & 0x3Fu) << 12 | (c[2] & 0x3Fu) << 6 | (c[3] & 0x3Fu);
        length = 4;
        if (point < 0x10000 || point >= 0x20000) return OTHER;
    } else {
        return OTHER;
    }
    if (r->digit_of[point] > 9) return OTHER;
    r->at += length;
    return '0' + r->digit_of[point];
}

static inline __attribute__((always_inline)) int next(struct reader *r, bool any_script) {
    if (any_script && (r->at == r->end || *r->at == '_' || *r->at >= 0x80)) return next_of_any_script(r);
    return r->at == r->end ? END : *r->at++;
}

/* Where the token ends, behind which `c` was read; NULL where it goes on with `c`. */
static inline const byte *token_end(const struct reader *r, int c, bool wide) {
    const byte *at = c >= 0 ? r->at - 1 : r->at;
    return ends_token(at, r->end, wide) ? at : NULL;
}

/* The same where the token was an i so far and can only be "inf" or "infinity". */
RARE static const byte *infinity_end(struct reader *r) {
    const char *rest = "nfinity";
    for (int count = 0;; count++) {
        int c = next(r, true);
        if (count < 7 && (c | 0x20) == rest[count]) continue;
        return count == 2 || count == 7 ? token_end(r, c, true) : NULL;
    }
}

/* Reads a token that is a number, and returns where it ends; NULL where it is none.
 *
 * It is [sign] digits [.digits] [e [sign] digits] with at least one digit on either side of the point; by
 * LiveCodeBench's rule (`digit_of` given) what Decimal() takes: infinities, too, and underscores and digits of any
 * script. NaNs equal nothing and are no numbers here. Exponents are right up to 4 * 10^18. */
static inline __attribute__((always_inline)) const byte *read_number(
    const byte *at, const byte *end, const byte *digit_of, struct number *number) {
    const bool any_script = digit_of != NULL;
    struct reader r = {at, end, digit_of};
    const byte *before = at;
    int c = next(&r, any_script);
    const bool negative = c == '-';
    if (c == '+' || c == '-') before = r.at, c = next(&r, any_script);
    if (any_script && (c | 0x20) == 'i') {
        *number = (struct number){.negative = negative, .infinite = true};
        return infinity_end(&r);
    }
    bool digits = false, point = false;
    int64_t fraction = 0;
    for (; c == '0' || (c == '.' && !point); before = r.at, c = next(&r, any_script)) {
        if (c == '.')
            point = true;
        else
            digits = true, fraction += point;
    }
    /* The first digit is the last of `top + 1` before the point, or else the one after so many zeros behind it. */
    int64_t top = -fraction - 1, count = 0;
    const byte *last = before;
    uint64_t kept = 0;
    bool whole = !point;
    for (;; c = next(&r, any_script)) {
        unsigned digit = (unsigned)c - '0';
        if (digit < 10) {
            if (count++ < KEPT_DIGITS) kept = 10 * kept + digit;
            if (digit != 0) last = r.at;
            fraction += point;
        } else if (c == '.' && !point) {
            point = true;
            top = count - 1;
        } else {
            break;
        }
    }
    if (whole && !point) top = count - 1;
    if (!digits && count == 0) return NULL;
    int64_t exponent = 0;
    if (c == 'e' || c == 'E') {
        c = next(&r, any_script);
        const bool below = c == '-';
        if (c == '+' || c == '-') c = next(&r, any_script);
        if (c < '0' || c > '9') return NULL;
        for (; c >= '0' && c <= '9'; c = next(&r, any_script))
            exponent = exponent < 400000000000000000 ? 10 * exponent + (c - '0') : 4000000000000000000;
        if (below) exponent = -exponent;
    }
    *number = (struct number){before, last, top + exponent, count, kept, negative, false};
    const byte *token = token_end(&r, c, any_script);
    if (token == NULL || token - at > MAX_NUMBER_BYTES) return NULL;
    if (any_script) {
        /* What Decimal() refuses: the bounds of libmpdec on 64 bits. */
        int64_t lowest = exponent - fraction, highest = count == 0 ? lowest : number->top;
        if (highest > 999999999999999999 || lowest < -1999999999999999997) return NULL;
    }
    return token;
}

/* All powers of ten that 64 bits hold. */
static const uint64_t POWERS[KEPT_DIGITS + 1] = {
    1u,
    10u,
    100u,
    1000u,
    10000u,
    100000u,
    1000000u,
    10000000u,
    100000000u,
    1000000000u,
    10000000000u,
    100000000000u,
    1000000000000u,
    10000000000000u,
    100000000000000u,
    1000000000000000u,
    10000000000000000u,
    100000000000000000u,
    1000000000000000000u,
    10000000000000000000u,
};

/* -- LiveCodeBench's numbers: Decimals, equal or not */

__attribute__((noinline)) static const byte *read_decimal(const byte *at, const byte *end, const byte *digit_of,
                                                          struct number *number) {
    if (digit_of == NULL) __builtin_unreachable();
    return read_number(at, end, digit_of, number);
}

RARE static bool equal_digits(const struct number *one, const struct number *other, const byte *digit_of) {
    struct reader a = {one->digits, one->end, digit_of}, b = {other->digits, other->end, digit_of};
    for (;;) {
        int c = next(&a, true), d = next(&b, true);
        if (c == '.') c = next(&a, true);
        if (d == '.') d = next(&b, true);
        if (c != d) return false;
        if (c == END) return true;
    }
}

static bool equal_numbers(const struct number *one, const struct number *other, const byte *digit_of) {
    if (one->infinite || other->infinite) return one->infinite && other->infinite && one->negative == other->negative;
    if (is_zero(one) || is_zero(other)) return is_zero(one) && is_zero(other);
    if (one->negative != other->negative || one->top != other->top) return false;
    if (one->count > KEPT_DIGITS || other->count > KEPT_DIGITS) return equal_digits(one, other, digit_of);
    return one->count < other->count ? one->kept * POWERS[other->count - one->count] == other->kept
                                     : one->kept == other->kept * POWERS[one->count - other->count];
}

/* -- numbers within a tolerance */

/* Half an ulp above the largest double: from here on, a double is infinite. */
static const char INFINITE_FROM[] =
    "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692"
    "887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842"
    "914819860834936475292719074168444365510704342711559699508093042880177904174497792";
enum { INFINITE_TOP = 308 };

/* Numbers below 10 to this power are 0: no double is near, and exponents of any size are then safe to compute with. */
enum { ZERO_TOP = -1000000 };

static bool is_infinite(const struct number *number) {
    if (is_zero(number) || number->top != INFINITE_TOP) return !is_zero(number) && number->top > INFINITE_TOP;
    const byte *at = number->digits;
    for (const char *limit = INFINITE_FROM; *limit != '\0'; limit++) {
        if (at < number->end && *at == '.') at++;
        char digit = at < number->end ? (char)*at++ : '0';
        if (digit != *limit) return digit > *limit;
    }
    return true;
}

__attribute__((noinline)) static const byte *read_finite(const byte *at, const byte *end, struct number *number) {
    const byte *token = read_number(at, end, NULL, number);
    if (token == NULL || is_infinite(number)) return NULL;
    if (number->top < ZERO_TOP) number->end = number->digits;
    if (is_zero(number)) *number = (struct number){.digits = at, .end = at};
    return token;
}

/* The power of ten of the last digit. */
static int64_t bottom(const struct number *number) { return number->top - (number->count - 1); }

typedef unsigned __int128 integer;

/* The integer times 10^power, or whether that is too large. */
static bool overflows(integer *value, int64_t power) {
    for (; power > KEPT_DIGITS; power -= KEPT_DIGITS)
        if (__builtin_mul_overflow(*value, POWERS[KEPT_DIGITS], value)) return true;
    return __builtin_mul_overflow(*value, POWERS[power], value);
}

/* Whether one * 10^power <= other * 10^other_power. */
static bool at_most(integer one, int64_t power, integer other, int64_t other_power) {
    if (one == 0 || other == 0) return one == 0;
    if (power > other_power) return !overflows(&one, power - other_power) && one <= other;
    return overflows(&other, other_power - power) || one <= other;
}

struct digits {
    const byte *at, *end;
    int64_t top;
};

static int digit_at(struct digits *digits, int64_t power) {
    if (digits->at == digits->end || power > digits->top) return 0;
    if (*digits->at == '.') digits->at++;
    return *digits->at++ - '0';
}

static int64_t next_power(const struct digits *digits, int64_t power, int64_t found) {
    if (digits->at == digits->end) return found;
    int64_t own = digits->top < power ? digits->top : power;
    return own > found ? own : found;
}

/* Whether sign * |one| + other_sign * |other| > factor * 10^shift * |base|, exactly, for numbers of any length.
 *
 * All three are read digit by digit from the largest power of ten on, with what they come to so far, in units of the
 * power at hand. What is left of them is then between -2 - factor and 2, which soon leaves no doubt about the sign. */
static bool exceeds(int sign, const struct number *one, int other_sign, const struct number *other, int64_t factor,
                    int64_t shift, const struct number *base) {
    struct digits a = {one->digits, one->end, one->top}, b = {other->digits, other->end, other->top};
    struct digits c = {base->digits, factor == 0 ? base->digits : base->end, base->top + shift};
    int64_t sum = 0;
    for (int64_t power = INT64_MAX;; power--) {
        if (sum == 0) power = next_power(&a, power, next_power(&b, power, next_power(&c, power, INT64_MIN)));
        if (a.at == a.end && b.at == b.end && c.at == c.end) return sum > 0;
        sum = 10 * sum + sign * digit_at(&a, power) + other_sign * digit_at(&b, power) - factor * digit_at(&c, power);
        if (sum >= factor + 2) return true;
        if (sum <= -2) return false;
    }
}

static bool apart_at_most(const struct number *got, const struct number *want, int64_t factor, int64_t shift,
                          const struct number *base) {
    int sign = got->negative ? -1 : 1, other_sign = want->negative ? 1 : -1;
    return !exceeds(sign, got, other_sign, want, factor, shift, base) &&
           !exceeds(-sign, got, -other_sign, want, factor, shift, base);
}

/* Whether |got - want| <= max(absolute, relative * |want|), exactly. */
static bool near(const struct number *got, const struct number *want, const struct tolerance *tolerance) {
    int64_t apart = is_zero(got) || is_zero(want) ? 0 : bottom(got) - bottom(want);
    if (got->count <= KEPT_DIGITS && want->count <= KEPT_DIGITS && apart < KEPT_DIGITS && apart > -KEPT_DIGITS) {
        /* Both are integers of fewer than 38 digits, times the lower one's power of ten. */
        int64_t power = is_zero(got) ? bottom(want) : is_zero(want) || apart < 0 ? bottom(got) : bottom(want);
        integer one = (integer)got->kept * POWERS[apart > 0 ? apart : 0];
        integer other = (integer)want->kept * POWERS[apart < 0 ? -apart : 0];
        integer difference = got->negative != want->negative ? one + other : one > other ? one - other : other - one;
        integer relative = (integer)want->kept * (uint64_t)tolerance->relative_digits;
        return at_most(difference, power, (integer)tolerance->absolute_digits, tolerance->absolute_exponent) ||
               at_most(difference, power, relative, bottom(want) + tolerance->relative_exponent);
    }
    static const byte digit[] = "1";
    static const struct number one = {.digits = digit, .end = digit + 1};
    return apart_at_most(got, want, tolerance->absolute_digits, tolerance->absolute_exponent, &one) ||
           apart_at_most(got, want, tolerance->relative_digits, tolerance->relative_exponent, want);
}

/* Whether both are whole a finite number, and near. */
bool within(const byte *got, int64_t got_length, const byte *want, int64_t want_length,
            const struct tolerance *tolerance) {
    struct number one, other;
    return read_finite(want, want + want_length, &other) == want + want_length &&
           read_finite(got, got + got_length, &one) == got + got_length && near(&one, &other, tolerance);
}

/* -- tokens */

static bool part_at(struct place *place, int64_t got_start, int64_t got_end, int64_t want_start, int64_t want_end) {
    *place = (struct place){got_start, got_end, want_start, want_end};
    return true;
}

/* Whether a token differs; `tolerance` may be NULL. */
bool tokens_part(const byte *got, int64_t got_length, const byte *want, int64_t want_length, bool fold_case,
                 const struct tolerance *tolerance, struct place *place) {
    const byte *g = got, *got_end = got + got_length, *w = want, *want_end = want + want_length;
    size_t shared = equal_run(g, w, least((size_t)got_length, (size_t)want_length));
    g += shared, w += shared;
    for (;;) {
        size_t length = least((size_t)(got_end - g), (size_t)(want_end - w));
        size_t run = fold_case ? equal_run_but_case(g, w, length) : equal_run(g, w, length);
        g += run, w += run;
        /* Either both stand behind the same part of a token, or both behind no part of one. */
        bool inside = g > got && !is_space(g[-1]);
        bool got_out = ends_token(g, got_end, false), want_out = ends_token(w, want_end, false);
        if (inside ? !got_out || !want_out : !got_out && !want_out) {
            const byte *got_token = g;
            while (got_token > got && !is_space(got_token[-1])) got_token--;
            const byte *want_token = w - (g - got_token);
            struct number one, other;
            const byte *want_next = tolerance == NULL ? NULL : read_finite(want_token, want_end, &other);
            const byte *got_next = want_next == NULL ? NULL : read_finite(got_token, got_end, &one);
            if (got_next == NULL || !near(&one, &other, tolerance))
                return part_at(place, got_token - got, skip_token(g, got_end, false) - got, want_token - want,
                               skip_token(w, want_end, false) - want);
            g = got_next, w = want_next;
        }
        g = skip_space(g, got_end, false), w = skip_space(w, want_end, false);
        if (g == got_end && w == want_end) return false;
        if (g == got_end) return part_at(place, -1, -1, w - want, skip_token(w, want_end, false) - want);
        if (w == want_end) return part_at(place, g - got, skip_token(g, got_end, false) - got, -1, -1);
    }
}

/* How many tokens begin in the text. */
int64_t count_tokens(const byte *text, int64_t length) {
    int64_t count = length > 0 && !is_space(text[0]);
    for (int64_t at = 1; at < length; at++) count += is_space(text[at - 1]) & !is_space(text[at]);
    return count;
}

int64_t count_newlines(const byte *text, int64_t length) {
    int64_t count = 0;
    for (int64_t at = 0; at < length; at++) count += text[at] == '\n';
    return count;
}

/* -- lines */

static const byte *line_start(const byte *at, const byte *begin) {
    while (at > begin && at[-1] != '\n') at--;
    return at;
}

static const byte *line_end(const byte *at, const byte *end) {
    for (int near = 0; near < 16; near++, at++)
        if (at == end || *at == '\n') return at;
    const byte *found = memchr(at, '\n', (size_t)(end - at));
    return found == NULL ? end : found;
}

/* Whether both lines, from here on, split into equally many Decimals, equal in turn; then passes them. */
static inline bool pass_decimals(const byte **got, const byte *got_end, const byte **want, const byte *want_end,
                                 const byte *digit_of) {
    const byte *g = *got, *w = *want;
    struct number one = {0}, other = {0};
    for (;;) {
        g = skip_blank(g, got_end, true), w = skip_blank(w, want_end, true);
        bool got_ends = g == got_end || *g == '\n', want_ends = w == want_end || *w == '\n';
        if (got_ends || want_ends) {
            *got = g, *want = w;
            return got_ends && want_ends;
        }
        /* The same plain integer is not read twice. */
        ptrdiff_t length = 0, longest = got_end - g < want_end - w ? got_end - g : want_end - w;
        while (length < longest && g[length] == w[length] && (byte)(g[length] - '0') < 10) length++;
        if (length > 0 && length <= MAX_NUMBER_BYTES && ends_token(g + length, got_end, true) &&
            ends_token(w + length, want_end, true)) {
            g += length, w += length;
            continue;
        }
        g = read_decimal(g, got_end, digit_of, &one);
        if (g == NULL) return false;
        w = read_decimal(w, want_end, digit_of, &other);
        if (w == NULL || !equal_numbers(&one, &other, digit_of)) return false;
    }
}

/* Whether a line differs, whitespace at its end aside. The texts must end with no whitespace. With `digit_of`, it is by
 * LiveCodeBench's rule; they must then begin with none, too. */
static inline __attribute__((always_inline)) bool lines_differ(
    const byte *got, int64_t got_length, const byte *want, int64_t want_length, const byte *digit_of,
    struct place *place) {
    const bool wide = digit_of != NULL;
    const byte *g = got, *got_end = got + got_length, *w = want, *want_end = want + want_length;
    bool got_ends = got_length == 0, want_ends = want_length == 0;
    for (;;) {
        if (got_ends || want_ends) {
            if (got_ends && want_ends) return false;
            const byte *rest = got_ends ? w : g, *end = line_end(rest, got_ends ? want_end : got_end);
            if (wide) rest = skip_blank(rest, end, wide);
            end = strip_end(rest, end, wide);
            if (got_ends) return part_at(place, -1, -1, rest - want, end - want);
            return part_at(place, rest - got, end - got, -1, -1);
        }
        /* Both stand at the start of a line. */
        if (wide) g = skip_blank(g, got_end, wide), w = skip_blank(w, want_end, wide);
        size_t run = equal_run(g, w, least((size_t)(got_end - g), (size_t)(want_end - w)));
        g += run, w += run;
        const byte *got_next = skip_blank(g, got_end, wide), *want_next = skip_blank(w, want_end, wide);
        if ((got_next < got_end && *got_next != '\n') || (want_next < want_end && *want_next != '\n')) {
            g = line_start(g, got), w = line_start(w, want);
            got_next = g, want_next = w;
            if (!wide || !pass_decimals(&got_next, got_end, &want_next, want_end, digit_of)) {
                got_next = line_end(g, got_end), want_next = line_end(w, want_end);
                if (wide) g = skip_blank(g, got_next, wide), w = skip_blank(w, want_next, wide);
                const byte *got_line_end = strip_end(g, got_next, wide), *want_line_end = strip_end(w, want_next, wide);
                size_t length = (size_t)(got_line_end - g);
                if ((ptrdiff_t)length != want_line_end - w || equal_run(g, w, length) != length)
                    return part_at(place, g - got, got_line_end - got, w - want, want_line_end - want);
            }
        }
        got_ends = got_next == got_end, want_ends = want_next == want_end;
        g = got_ends ? got_end : got_next + 1, w = want_ends ? want_end : want_next + 1;
    }
}

bool lines_part(const byte *got, int64_t got_length, const byte *want, int64_t want_length, struct place *place) {
    got_length = strip_end(got, got + got_length, false) - got;
    want_length = strip_end(want, want + want_length, false) - want;
    return lines_differ(got, got_length, want, want_length, NULL, place);
}

/* Whether a line differs by LiveCodeBench's rule. `digit_of` has 0x20000 bytes, see `struct reader`. */
bool lcb_parts(const byte *got, int64_t got_length, const byte *want, int64_t want_length, const byte *digit_of,
               struct place *place) {
    const byte *got_start = skip_space(got, got + got_length, true);
    const byte *want_start = skip_space(want, want + want_length, true);
    const byte *got_end = strip_end(got_start, got + got_length, true);
    const byte *want_end = strip_end(want_start, want + want_length, true);
    if (!lines_differ(got_start, got_end - got_start, want_start, want_end - want_start, digit_of, place))
        return false;
    if (place->got_start >= 0) place->got_start += got_start - got, place->got_end += got_start - got;
    if (place->want_start >= 0) place->want_start += want_start - want, place->want_end += want_start - want;
    return true;
}

/* -- plain data: two texts of JSON, written by the same encoder and so without white space */

enum {
    /* Numbers of no more digits, and below ten to this power, are equal as doubles where they are as decimals. */
    EXACT_DIGITS = 15,
};

static bool is_mark(byte c) { return c == '[' || c == ']' || c == '{' || c == '}' || c == ',' || c == ':'; }

/* Where the string, the mark, or the number or word that begins here ends. */
static const byte *plain_token_end(const byte *at, const byte *end) {
    if (is_mark(*at)) return at + 1;
    if (*at == '"') {
        for (at++; at < end && *at != '"'; at++)
            if (*at == '\\' && end - at > 1) at++;
        return at < end ? at + 1 : end;
    }
    while (at < end && !is_mark(*at) && *at != '"') at++;
    return at;
}

/* Reads a number of JSON, or, where numbers and booleans are compared by value, a boolean as 1 or 0. */
static bool read_plain_number(const byte *at, const byte *end, bool loose, struct number *number, bool *is_float) {
    if (loose && end - at == 4 && memcmp(at, "true", 4) == 0) at = (const byte *)"1", end = at + 1;
    if (loose && end - at == 5 && memcmp(at, "false", 5) == 0) at = (const byte *)"0", end = at + 1;
    *is_float = false;
    for (const byte *c = at; c < end && c - at < MAX_NUMBER_BYTES && !*is_float; c++)
        *is_float = *c == '.' || (*c | 0x20) == 'e';
    return at < end && *at != '+' && read_finite(at, end, number) == end;
}

/* Whether two tokens that differ are numbers that count as one. Of some that do it says no: see plain_part. */
static bool alike(const byte *got, const byte *got_end, const byte *want, const byte *want_end, bool loose,
                  const struct tolerance *tolerance) {
    struct number one, other;
    bool got_float, want_float;
    if (!read_plain_number(got, got_end, loose, &one, &got_float) ||
        !read_plain_number(want, want_end, loose, &other, &want_float) || (!loose && got_float != want_float))
        return false;
    bool exact = one.count <= EXACT_DIGITS && other.count <= EXACT_DIGITS && one.top < EXACT_DIGITS &&
                 other.top < EXACT_DIGITS;
    if (exact && equal_numbers(&one, &other, NULL)) return true;
    return tolerance != NULL && (got_float || want_float) && near(&one, &other, tolerance);
}

/* Whether a token differs, from these offsets on. `tolerance` may be NULL. Numbers that are too long to be told apart as
 * decimals differ here where their texts do; whoever knows better goes on behind them. */
bool plain_part(const byte *got, int64_t got_length, const byte *want, int64_t want_length, int64_t got_at,
                int64_t want_at, bool loose, const struct tolerance *tolerance, struct place *place) {
    const byte *g = got + got_at, *got_end = got + got_length, *w = want + want_at, *want_end = want + want_length;
    while (g < got_end && w < want_end) {
        const byte *got_next = plain_token_end(g, got_end), *want_next = plain_token_end(w, want_end);
        size_t length = (size_t)(got_next - g);
        if (got_next - g != want_next - w || memcmp(g, w, length) != 0)
            if (!alike(g, got_next, w, want_next, loose, tolerance))
                return part_at(place, g - got, got_next - got, w - want, want_next - want);
        g = got_next, w = want_next;
    }
    if (g == got_end && w == want_end) return false;
    if (g == got_end) return part_at(place, -1, -1, w - want, plain_token_end(w, want_end) - want);
    return part_at(place, g - got, plain_token_end(g, got_end) - got, -1, -1);
}
