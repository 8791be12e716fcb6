package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// tree is the job object that holds a leader and its descendants.
type tree struct {
	terminal bool
	job      windows.Handle
	leader   *os.Process
}

// newTree makes a job whose members end when its last handle is closed, at the latest
// when this process ends.
func newTree(terminal bool) (*tree, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("create job object: %w", err)
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		windows.CloseHandle(job)
		return nil, fmt.Errorf("set up job object: %w", err)
	}
	return &tree{terminal: terminal, job: job}, nil
}

// attributes has the leader start suspended, so that it cannot start anything before it
// is in the job. A group of its own keeps the console's Ctrl-C away from it.
func (t *tree) attributes() *syscall.SysProcAttr {
	flags := uint32(windows.CREATE_SUSPENDED)
	if !t.terminal {
		flags |= windows.CREATE_NEW_PROCESS_GROUP
	}
	return &syscall.SysProcAttr{CreationFlags: flags}
}

// start starts the leader.
func (t *tree) start(cmd *exec.Cmd, _ bool) error { return cmd.Start() }

// proceed has nothing to do: the leader has begun.
func (t *tree) proceed() {}

// enter and endNamespace are for systems with process namespaces.
func (t *tree) enter(_, _ int) *os.Process { return t.leader }
func (t *tree) endNamespace()              {}

// adopt puts the leader into the job and lets it run.
func (t *tree) adopt(p *os.Process) error {
	t.leader = p
	var err error
	handleErr := p.WithHandle(func(handle uintptr) {
		err = windows.AssignProcessToJobObject(t.job, windows.Handle(handle))
	})
	if err := errors.Join(handleErr, err); err != nil {
		return fmt.Errorf("put it into a job object: %w", err)
	}
	if err := resume(uint32(p.Pid)); err != nil {
		return fmt.Errorf("resume it: %w", err)
	}
	return nil
}

// resume lets the one thread of a process that was started suspended run.
func resume(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		defer windows.CloseHandle(thread)
		_, err = windows.ResumeThread(thread)
		return err
	}
	return fmt.Errorf("its thread was not found: %w", err)
}

// wait returns when the leader has ended.
func (t *tree) wait() {
	_ = t.leader.WithHandle(func(handle uintptr) {
		_, _ = windows.WaitForSingleObject(windows.Handle(handle), windows.INFINITE)
	})
}

func (t *tree) kill() { _ = windows.TerminateJobObject(t.job, 1) }

// terminate kills: the system has no way to ask a program to end.
func (t *tree) terminate() { t.kill() }

func (t *tree) sweep() { t.kill() }

// killHolders has nothing to do: processes that hold the output are in the job.
func (t *tree) killHolders([]*os.File) {}

// guard has nothing to do: the end of this process closes the job.
func (t *tree) guard() (stop func()) { return func() {} }

func (t *tree) close() { windows.CloseHandle(t.job) }

// hangUp ends a program: the system has no way to ask it to.
func hangUp(p *os.Process) (kill func(), err error) { return func() {}, p.Kill() }

// signalName is empty: the system has no signals.
func signalName(*os.ProcessState) string { return "" }
