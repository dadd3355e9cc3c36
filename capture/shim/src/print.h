/* Messages to the user on stderr, without stdio's buffers and locks, which are the program's. Nothing is written where
 * the program has closed or replaced stderr, and a failing write sends the program no signal. */
#ifndef COMMQ_PRINT_H
#define COMMQ_PRINT_H

void cq_print(const char *format, ...) __attribute__((format(printf, 1, 2), visibility("hidden")));

#endif
