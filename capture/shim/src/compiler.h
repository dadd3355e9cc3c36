/* Compiler features that the shim uses. */
#ifndef COMMQ_COMPILER_H
#define COMMQ_COMPILER_H

#define CQ_LIKELY(x) __builtin_expect(!!(x), 1)
#define CQ_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CQ_EXPORT __attribute__((visibility("default")))
#define CQ_HOT static inline __attribute__((always_inline))
#define CQ_TLS __thread __attribute__((tls_model("initial-exec")))

/* Keeps the compiler from moving stores to a slot across this point, so that a killed process leaves a whole slot or
 * none. */
CQ_HOT void cq_barrier(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#endif
