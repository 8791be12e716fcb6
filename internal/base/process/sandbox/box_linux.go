//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"loki/internal/base/process"
	"loki/internal/base/process/sandbox/shim"
	"loki/internal/base/process/tempdir"
)

// hold is what Prepare took.
type hold struct {
	k      kernelFacts
	temp   *temp
	plan   *os.File // to be written
	report *os.File // to be read
	theirs []*os.File
	rules  *ruleset // empty until the plan is made

	// The command, which the shim executes. Without a path it is a trial, which executes nothing.
	path      string
	args, env []string
	dir       string

	network *network // nil if nothing leads in or out of the network of the child
	alone   bool     // the command is in a process namespace of its own

	first, command int // processes of that namespace, once they are there
}

func (h *hold) closeTheirs() {
	for _, f := range h.theirs {
		f.Close()
	}
	h.theirs = nil
}

// rulesFD is the descriptor of the rules of Landlock in the shim.
const rulesFD = shim.FirstFD

func (b *Box) prepare(cmd *exec.Cmd) (waits bool, err error) {
	k := kernel()
	if k.broken != nil {
		return false, k.broken
	}
	k.namespaces = k.namespaces && !b.s.plain && b.s.workspace() != "/"
	return true, b.confine(cmd, k)
}

// confine makes cmd a shim that waits for the plan by which it becomes the command that cmd was. All that takes time
// is left to release: until then the shim starts.
func (b *Box) confine(cmd *exec.Cmd, k kernelFacts) error {
	h := &b.hold
	h.k, h.path, h.args, h.env, h.dir = k, cmd.Path, cmd.Args, cmd.Env, cmd.Dir
	var err error
	if h.dir == "" {
		if h.dir, err = os.Getwd(); err != nil {
			return err
		}
	}
	if h.temp, err = newTemp(); err != nil {
		return fmt.Errorf("temporary directory: %w", err)
	}
	if h.rules, err = newRuleset(k.landlock, !k.namespaces); err != nil {
		return err
	}
	rules := os.NewFile(uintptr(h.rules.fd), "rules of Landlock")
	h.theirs = append(h.theirs, rules)
	planReader, planWriter, err := os.Pipe()
	if err != nil {
		return err
	}
	h.theirs, h.plan = append(h.theirs, planReader), planWriter
	reportReader, reportWriter, err := os.Pipe()
	if err != nil {
		return err
	}
	h.theirs, h.report = append(h.theirs, reportWriter), reportReader
	extra := []*os.File{planReader, reportWriter, rules}
	if k.namespaces && (b.declared.Level == Network || b.needs.Dialed || len(b.needs.Reach) > 0) {
		var theirs *os.File
		if h.network, theirs, err = b.newNetwork(); err != nil {
			return err
		}
		h.theirs, extra = append(h.theirs, theirs), append(extra, theirs)
	}
	h.alone = k.processes && k.namespaces && cmd.SysProcAttr.Setsid
	if k.namespaces {
		if err := namespaces(cmd.SysProcAttr, b.networked()); err != nil {
			return err
		}
	}
	if cmd.Path, err = self(); err != nil {
		return err
	}
	cmd.Args, cmd.Env = []string{"loki-sandbox"}, shim.Environ()
	cmd.ExtraFiles = extra
	return nil
}

// plan makes the plan of the shim.
func (b *Box) plan() ([]byte, error) {
	h := &b.hold
	l, err := b.begin()
	if err != nil {
		return nil, err
	}
	l.coarse = !h.k.namespaces
	b.held, b.dir = l, h.dir
	own := h.k.namespaces && b.networked()
	temp, port := h.temp.path, 0
	if h.k.namespaces {
		temp = "/tmp"
	}
	if h.network != nil && h.network.proxy != nil {
		port = proxyPort
	}
	p := &plan{}
	if h.k.namespaces {
		if err := layout(h.temp.path); err != nil {
			return nil, err
		}
		l.newRoot(p, h.temp.path, h.dir, writeRights&h.rules.held)
	}
	if own {
		p.loopback()
	}
	if h.network != nil {
		p.sockets(h.network)
	}
	if err := l.landlock(h.rules, h.temp.path, h.k.namespaces); err != nil {
		return nil, err
	}
	if h.alone {
		p.processes()
	}
	p.capabilities(keptCapabilities(h.k.namespaces))
	p.confine(newFilter(h.k.namespaces, own))
	if h.path == "" {
		p.call("end", unix.SYS_EXIT_GROUP, shim.Number(0))
	} else {
		p.call("execute", unix.SYS_EXECVE, p.Text(h.path), p.Texts(h.args), p.Texts(b.environ(h.env, temp, port)))
	}
	return p.Encode(), nil
}

// self returns what executes this program again.
func self() (string, error) {
	const exe = "/proc/self/exe" // the same file even if another has been installed in its place
	if _, err := os.Stat(exe); err == nil {
		return exe, nil
	}
	if path, err := os.Executable(); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(os.Args[0]) // a user may not look into /proc
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("find the program that runs here, without /proc: %w", err)
	}
	return path, nil
}

func (b *Box) release() error {
	h := &b.hold
	text, err := b.plan()
	h.closeTheirs()
	if err != nil {
		h.plan.Close()
		return unconfinedError("", err)
	}
	_, err = h.plan.Write(text)
	h.plan.Close()
	if err != nil && !errors.Is(err, syscall.EPIPE) { // the report says more
		return fmt.Errorf("sandbox: hand over the plan: %w", err)
	}
	text, err = io.ReadAll(io.LimitReader(h.report, 1<<10))
	h.report.Close()
	if err != nil {
		return fmt.Errorf("sandbox: read the report: %w", err)
	}
	report := shim.ParseReport(text)
	h.first, h.command = report.First, report.Command
	if err := reportError(report); err != nil || h.network == nil {
		return err
	}
	if err := h.network.serve(); err != nil {
		return fmt.Errorf("sandbox: take the sockets of its network: %w", err)
	}
	return nil
}

// Namespace implements process.Namespaced.
func (b *Box) Namespace() (first, command int) { return b.hold.first, b.hold.command }

// unconfinedError returns the error of a command that did not run, since it could not be confined. It is one of the system only if a limit is
// reached: others would be taken for those of the command.
func unconfinedError(where string, err error) error {
	if process.IsLimit(err) {
		return fmt.Errorf("sandbox: %s%w; the command did not run", where, err)
	}
	return fmt.Errorf("sandbox: %s%v; the command did not run", where, err)
}

// reportError returns what is wrong with a report. Only the error of the command itself is one of the system, see
// process.Confinement.
func reportError(r shim.Report) error {
	switch {
	case r.Label != "" && r.Executing:
		return r.Errno
	case strings.HasPrefix(r.Label, findLabel) && (absent(r.Errno) || r.Errno == unix.ESTALE):
		return fmt.Errorf("sandbox: another program moved or replaced %s while the command was set up; the command did not run: run it again", strings.TrimPrefix(r.Label, findLabel))
	case r.Label != "":
		return unconfinedError(r.Label+": ", r.Errno)
	case !r.Executing:
		return errors.New("sandbox: its process ended early; the command did not run")
	}
	return nil
}

func (b *Box) end() {
	h := &b.hold
	h.closeTheirs()
	for _, f := range []*os.File{h.plan, h.report} {
		if f != nil {
			f.Close()
		}
	}
	if h.network != nil {
		if h.network.close(); h.network.proxy != nil {
			b.connections = h.network.proxy.RefusedHosts()
		}
	}
	if h.temp != nil {
		h.temp.remove()
	}
	if b.found != nil {
		b.finish()
	}
}

// plan is a plan of the shim that is being made.
type plan struct{ shim.Plan }

// confine plans what the kernel holds by process.
func (p *plan) confine(f filter) {
	p.call("give up new privileges", unix.SYS_PRCTL, shim.Number(unix.PR_SET_NO_NEW_PRIVS), shim.Number(1))
	p.call("limit core dumps", unix.SYS_PRLIMIT64, shim.Number(0), shim.Number(unix.RLIMIT_CORE), p.Bytes(make([]byte, 16)))
	p.call("restrict files", unix.SYS_LANDLOCK_RESTRICT_SELF, shim.Number(rulesFD), shim.Number(0))
	p.call("close descriptors", unix.SYS_CLOSE_RANGE, shim.Number(shim.PlanFD), shim.Number(1<<32-1), shim.Number(unix.CLOSE_RANGE_CLOEXEC))
	program := p.Bytes(binary.NativeEndian.AppendUint16(make([]byte, 0, 16), uint16(len(f)))[:16])
	p.Store(program, 8, 8, p.Bytes(f.bytes()))
	p.call("restrict system calls", unix.SYS_SECCOMP, shim.Number(unix.SECCOMP_SET_MODE_FILTER), shim.Number(0), program)
}

func (p *plan) call(label string, number uintptr, args ...shim.Arg) {
	p.Add(shim.Call{Label: label, Number: number, Args: args})
}

// kernelFacts are what the kernel has.
type kernelFacts struct {
	landlock   int // version; 0 if it does not serve
	namespaces bool
	processes  bool  // namespaces of processes, too
	broken     error // why no child can be confined although the kernel could; nil if it can
	support    Support
}

// kernelFound is what was found out about the kernel.
var kernelFound struct {
	mu    sync.Mutex
	facts *kernelFacts // nil while it is not known
}

// kernel returns what the kernel has. While a limit of the system is reached, that cannot be found out.
func kernel() kernelFacts {
	kernelFound.mu.Lock()
	defer kernelFound.mu.Unlock()
	if kernelFound.facts != nil {
		return *kernelFound.facts
	}
	k := findKernel()
	if !process.IsLimit(k.broken) {
		kernelFound.facts = &k
	}
	return k
}

// findKernel finds out what the kernel has, by starting shims.
func findKernel() kernelFacts {
	version, err := landlockVersion()
	if err != nil {
		return kernelFacts{support: Support{Missing: err.Error()}}
	}
	k := kernelFacts{landlock: version}
	k.support = Support{Files: true, How: fmt.Sprintf("Landlock %d, seccomp", version)}
	lacks := missingFeatures(version)
	k.namespaces, k.processes = true, true
	err = k.try(Write)
	if err != nil && !process.IsLimit(err) {
		k.processes = false
		err = k.try(Write)
	}
	if err == nil { // what has less can be set up, too
		k.support.How, k.support.Networks = k.support.How+", namespaces", true
	} else if k.namespaces = false; !process.IsLimit(err) {
		lacks = append(lacks, fmt.Sprintf("namespaces are not to be had (%v), so at level write nothing new is made next to files that are protected and modes and times of files stay, and level network reaches no host", err))
		err = k.try(Read)
	}
	switch {
	case process.IsLimit(err):
		k.broken = fmt.Errorf("sandbox: %w", err)
	case err != nil: // not a reason to run programs without it
		k.broken = fmt.Errorf("it cannot be set up (%w), and no program runs without it; sandbox: {enabled: false} in config.yaml switches it off", err)
	}
	if k.broken != nil {
		k.support.Missing = k.broken.Error()
		return k
	}
	k.support.Missing = strings.Join(lacks, "; ")
	return k
}

// missingFeatures says what a version of Landlock does not hold.
func missingFeatures(version int) []string {
	var all []string
	if version < 6 {
		all = append(all, "signals to other processes of the user are not held before Linux 6.12")
	}
	return all
}

func kernelSupport() Support { return kernel().support }

// try has a shim confine itself and end, without a command.
func (k kernelFacts) try(level Level) error {
	dir, err := tempdir.Make("", "sandbox-trial") // of its own: what others make in it meanwhile would be withheld
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := New(Options{Workspace: dir}).Box(Declaration{Level: level}, Needs{})
	defer b.end()
	cmd := &exec.Cmd{Dir: "/", SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := b.confine(cmd, k); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = b.release()
	for _, pid := range []int{b.hold.command, b.hold.first} {
		if pid == 0 {
			continue
		}
		_ = unix.Kill(pid, unix.SIGKILL)
		for waitErr := error(unix.EINTR); errors.Is(waitErr, unix.EINTR); {
			_, waitErr = unix.Wait4(pid, nil, 0, nil)
		}
	}
	return errors.Join(err, cmd.Wait())
}
