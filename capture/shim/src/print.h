/* Messages to the user on stderr, without stdio's buffers and locks, which are the program's. */
#ifndef COMMQ_PRINT_H
#define COMMQ_PRINT_H

void cq_print(const char *format, ...) __attribute__((format(printf, 1, 2), visibility("hidden")));

#endif
