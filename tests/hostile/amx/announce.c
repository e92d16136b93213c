/* Loaded before torch in every process of the machine of machine.py: answers for its processor.

   Where torch's library asked the processor (CPUID, XGETBV), the first byte of the instruction is now that of a
   breakpoint. What comes here is what the processor at hand says, with what a Sapphire Rapids says of AMX
   and of all that AMX comes with. SIGILL is left alone: it is how the machine says that it forbids AMX. */

#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define BIT(n) (1u << (n))
#define TILES (BIT(17) | BIT(18)) /* the registers of AMX among those that the system saves */

typedef struct { unsigned a, b, c, d; } Answer;

static Answer asked(unsigned leaf, unsigned part) {
  Answer is;
  __cpuid_count(leaf, part, is.a, is.b, is.c, is.d);
  return is;
}

static Answer announced(unsigned leaf, unsigned part) {
  Answer is = asked(leaf, part);
  switch (leaf) {
  case 0x0: /* the last leaf; and MKL believes in AMX only where this is written */
    is.a = 0x20;
    memcpy(&is.b, "Genu", 4), memcpy(&is.d, "ineI", 4), memcpy(&is.c, "ntel", 4);
    break;
  case 0x1: is.a = 0x000806F8; break; /* family, model, stepping */
  case 0x4: /* the caches; where AMD says so, it says it elsewhere, in the same form */
    if (!is.a) is = asked(0x8000001D, part);
    break;
  case 0x7:
    if (part == 0) is.d |= BIT(22) | BIT(23) | BIT(24) | BIT(25); /* amx_bf16 avx512_fp16 amx_tile amx_int8 */
    if (part == 1) is.a |= BIT(4); /* avx_vnni */
    break;
  case 0xD: /* what XSAVE keeps, and how many bytes it takes */
    if (part == 0) is.a |= TILES, is.b = is.c = 11008;
    if (part == 17) is = (Answer){64, 2752, 2, 0};
    if (part == 18) is = (Answer){8192, 2816, 6, 0};
    break;
  case 0x1D: /* one palette: 8 tiles of 16 rows of 64 bytes */
    if (part == 0) is = (Answer){1, 0, 0, 0};
    if (part == 1) is = (Answer){1024u << 16 | 8192, 8 << 16 | 64, 16, 0};
    break;
  case 0x1E: /* products of 16 rows and 64 columns */
    if (part == 0) is = (Answer){0, 64 << 8 | 16, 0, 0};
    break;
  }
  return is;
}

static unsigned long long enabled(unsigned which) {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(which));
  return (unsigned long long)high << 32 | low | (which == 0 ? TILES : 0);
}

static void answer(int signal_number, siginfo_t *unused, void *context) {
  (void)unused;
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const unsigned char *rest = (const unsigned char *)registers[REG_RIP];
  if (rest[0] == 0xA2) { /* of CPUID: 0F A2 */
    Answer is = announced((unsigned)registers[REG_RAX], (unsigned)registers[REG_RCX]);
    registers[REG_RAX] = is.a, registers[REG_RBX] = is.b, registers[REG_RCX] = is.c, registers[REG_RDX] = is.d;
    registers[REG_RIP] += 1;
  } else if (rest[0] == 0x01 && rest[1] == 0xD0) { /* of XGETBV: 0F 01 D0 */
    unsigned long long is = enabled((unsigned)registers[REG_RCX]);
    registers[REG_RAX] = (greg_t)(is & 0xFFFFFFFF), registers[REG_RDX] = (greg_t)(is >> 32);
    registers[REG_RIP] += 2;
  } else { /* a breakpoint of others */
    signal(signal_number, SIG_DFL);
    raise(signal_number);
  }
}

__attribute__((constructor)) static void begin(void) {
  struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGTRAP, &action, NULL);
}

/* The system permits AMX to who asks for it: arch_prctl(ARCH_GET_XCOMP_SUPP, _PERM and ARCH_REQ_XCOMP_PERM) */
long syscall(long number, ...) {
  static long (*original)(long, ...);
  if (!original) original = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  long given[6];
  va_list words;
  va_start(words, number);
  for (int i = 0; i < 6; i++) given[i] = va_arg(words, long);
  va_end(words);
  if (number == SYS_arch_prctl && given[0] == 0x1023) return 0;
  long result = original(number, given[0], given[1], given[2], given[3], given[4], given[5]);
  if (number == SYS_arch_prctl && (given[0] == 0x1021 || given[0] == 0x1022) && !result)
    *(unsigned long *)given[1] |= TILES;
  return result;
}
