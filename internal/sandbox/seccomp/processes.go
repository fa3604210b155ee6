package seccomp

import "slices"

// This file has the rules about other processes. All ids and selectors are
// pid_t or int.

// guarded are the ids that must be left alone.
func (p Profile) guarded() []uint64 {
	ids := make([]uint64, len(p.Guarded))
	for i, pid := range p.Guarded {
		ids[i] = uint64(pid)
	}
	return ids
}

// groups are the process groups that they lead, as kill and F_SETOWN name them.
func (p Profile) groups() []uint64 {
	ids := make([]uint64, len(p.Guarded))
	for i, pid := range p.Guarded {
		ids[i] = uint64(uint32(-pid))
	}
	return ids
}

// everyone is the id with which kill means all processes.
const everyone = 0xffffffff

// signals refuses to signal what is guarded. In a PID name space kill(-1) spares
// the init and is harmless, also where 1 is guarded; elsewhere it would reach all
// processes of the user.
func (p Profile) signals() []rule {
	var rules []rule
	switch ids := p.guarded(); {
	case !p.Tkill:
		rules = append(rules, flat(eperm, `tkill`))
	case len(ids) > 0:
		rules = append(rules, refuse(`tkill`, is(0, ids...)))
	}
	if !p.Namespaced {
		rules = append(rules, refuse(`kill`, is(0, everyone)))
	}
	if len(p.Guarded) == 0 {
		return rules
	}
	// The group of process 1 is no group for kill, but everyone.
	groups := slices.DeleteFunc(p.groups(), func(id uint64) bool { return id == everyone })
	return append(rules,
		refuse(`kill`, is(0, slices.Concat(p.guarded(), groups)...)),
		refuse(`rt_sigqueueinfo pidfd_open`, is(0, p.guarded()...)),
		refuse(`tgkill rt_tgsigqueueinfo`, is(0, p.guarded()...)),
		refuse(`tgkill rt_tgsigqueueinfo`, is(1, p.guarded()...)),
	)
}

// owners keeps a descriptor from being tied to a guarded process, which would
// then get a signal of the payload's choice when there is input. The forms that
// take the id from memory are refused. The command is an unsigned int, the id an
// int.
func (p Profile) owners() []rule {
	rules := []rule{
		refuse(`fcntl`, is(1, fSETOWNEX)),
		refuse(`ioctl`, is(1, fioSETOWN, siocSPGRP)),
	}
	if len(p.Guarded) == 0 {
		return rules
	}
	return append(rules, refuse(`fcntl`, is(1, fSETOWN), is(2, slices.Concat(p.guarded(), p.groups())...)))
}

// Selectors of setpriority and ioprio_set.
const (
	prioProcess, prioGroup     = 0, 1
	ioprioProcess, ioprioGroup = 1, 2
)

// schedules keeps the priorities, processors and policies of other processes from
// being changed: there is no Landlock rule for them. A whole user is never
// allowed, since the init or the supervisor may be of it. Threads are asked for
// by their id, so without a PID name space a program cannot place its own threads.
func (p Profile) schedules() []rule {
	const byID = `sched_setparam sched_setscheduler sched_setattr sched_setaffinity`
	rules := []rule{
		refuse(`setpriority`, isNot(0, prioProcess, prioGroup)),
		refuse(`ioprio_set`, isNot(0, ioprioProcess, ioprioGroup)),
	}
	if !p.Namespaced {
		return append(rules, refuse(byID, isNot(0, 0)), refuse(`setpriority ioprio_set`, isNot(1, 0)))
	}
	if len(p.Guarded) == 0 {
		return rules
	}
	return append(rules, refuse(byID, is(0, p.guarded()...)), refuse(`setpriority ioprio_set`, is(1, p.guarded()...)))
}

// shared refuses what the processes of a user share beside files, unless the
// payload has an IPC name space of its own.
func (p Profile) shared() []rule {
	if p.Namespaced {
		return nil
	}
	return []rule{
		flat(eperm, `shmget shmat shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl`),
		flat(eperm, `mq_open mq_unlink`),
	}
}
