/* Memory whose every byte is known: background everywhere, but for the messages in it, each with
 * a pattern of its own. The two ends have different backgrounds. */
#ifndef PACELINE_TESTS_VERBS_AREAS_H
#define PACELINE_TESTS_VERBS_AREAS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Of splitmix64: spreads a number over all 64 bits. */
static inline uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

static inline uint64_t pattern_word(uint64_t key, size_t word) {
  return key + (uint64_t)word * 0xd1342543de82ef95ULL;
}

static inline void write_pattern(unsigned char* at, size_t bytes, uint64_t key) {
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    const uint64_t word = pattern_word(key, i / 8);
    memcpy(at + i, &word, 8);
  }
  const uint64_t word = pattern_word(key, i / 8);
  memcpy(at + i, &word, bytes - i);
}

/* The first byte that is not of the pattern; `bytes` when all are. */
static inline size_t pattern_differs(const unsigned char* at, size_t bytes, uint64_t key) {
  for (size_t i = 0; i < bytes; i += 8) {
    const uint64_t word = pattern_word(key, i / 8);
    const size_t part = bytes - i < 8 ? bytes - i : 8;
    if (memcmp(at + i, &word, part) == 0) continue;
    for (size_t b = 0; b < part; ++b) {
      if (at[i + b] != ((const unsigned char*)&word)[b]) return i + b;
    }
  }
  return bytes;
}

/* The first byte that is not background; `bytes` when all are. */
static inline size_t background_differs(const unsigned char* at, size_t bytes,
                                        unsigned char background) {
  if (bytes == 0 || (at[0] == background && memcmp(at, at + 1, bytes - 1) == 0)) return bytes;
  size_t i = 0;
  while (i < bytes && at[i] == background) ++i;
  return i;
}

/* Whether an area holds one message at `offset` and background around it, as text: NULL when it
 * does. A message without a byte leaves background alone. */
static inline const char* area_differs(const unsigned char* area, size_t capacity, size_t offset,
                                       size_t bytes, uint64_t key, unsigned char background) {
  static char text[160];
  size_t at = background_differs(area, offset, background);
  if (at < offset) {
    snprintf(text, sizeof(text), "byte %zu before the message is %#x", offset - at, area[at]);
    return text;
  }
  at = pattern_differs(area + offset, bytes, key);
  if (at < bytes) {
    size_t wrong = 0;
    for (size_t i = at; i < bytes; ++i) {
      const uint64_t word = pattern_word(key, i / 8);
      wrong += area[offset + i] != ((const unsigned char*)&word)[i % 8];
    }
    snprintf(text, sizeof(text), "byte %zu of %zu is %#x, %zu are wrong%s", at, bytes,
             area[offset + at], wrong,
             area[offset + at] == background ? ": nothing was written there" : "");
    return text;
  }
  const size_t end = offset + bytes;
  at = background_differs(area + end, capacity - end, background);
  if (at < capacity - end) {
    snprintf(text, sizeof(text), "byte %zu behind the message is %#x", at, area[end + at]);
    return text;
  }
  return NULL;
}

#endif
