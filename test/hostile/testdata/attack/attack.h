// What the parts of the hostile program share. See main.c for how it speaks.
#ifndef ATTACK_H
#define ATTACK_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// A probe is one attempt. It returns 0 or more when it got what it wanted, and
// -1 with errno when it was refused.
typedef long (*probe)(char *arg);

// attempt runs a probe in a child of its own and notes how it went: whatever
// a probe does to itself does not disturb the next one.
void attempt(const char *name, probe p, char *arg);

// first is the first process of this program and parent its parent: a launch may
// be process 1 itself, and then it has no parent in sight.
extern pid_t first, parent;

void escaped(const char *name);
void held(const char *name, const char *why);
void broken(const char *name, const char *why);

// reached turns an error that is only found after the permission was given, such
// as EINVAL for a value that makes no sense, into success.
long reached(long result);

// value is what follows the first '=' of LABEL=VALUE; label cuts it off.
char *value(char *arg);
char *label(char *arg, char *into, size_t size);

void pause_ms(long ms);

typedef void (*verb)(int argc, char **argv);
struct verb_row { const char *name; verb run; };
extern const struct verb_row file_verbs[], kernel_verbs[], process_verbs[], net_verbs[], resource_verbs[], victim_verbs[];

#endif
