package shim

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"
)

// start has a shim carry out a plan, and returns its report and what it printed.
func start(t *testing.T, encoded []byte) (report Report, printed string, code int) {
	t.Helper()
	planReader, planWriter, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reportReader, reportWriter, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	cmd := &exec.Cmd{Path: self, Args: []string{"shim"}, Env: Environ(), ExtraFiles: []*os.File{planReader, reportWriter}, Stdout: &out}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	planReader.Close()
	reportWriter.Close()
	_, _ = planWriter.Write(encoded) // a shim that has ended reads nothing
	planWriter.Close()
	text, err := io.ReadAll(reportReader)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	return ParseReport(text), out.String(), cmd.ProcessState.ExitCode()
}

func execute(p *Plan, path string, args ...string) {
	p.Add(Call{Label: "close the report", Number: syscall.SYS_FCNTL, Args: []Arg{Number(ReportFD), Number(syscall.F_SETFD), Number(syscall.FD_CLOEXEC)}})
	p.Add(Call{Label: "execute", Number: syscall.SYS_EXECVE, Args: []Arg{p.Text(path), p.Texts(args), p.Texts([]string{"A=b c", "B="})}})
}

func TestShim(t *testing.T) {
	t.Parallel()
	bad := Call{Label: "do what is not possible", Number: syscall.SYS_CLOSE, Args: []Arg{Number(999)}}
	tolerated, skipping := bad, bad
	tolerated.Tolerated = []syscall.Errno{syscall.ENOENT, syscall.EBADF}
	skipping.Skip = 1
	for _, tt := range []struct {
		name    string
		plan    func(*Plan)
		want    Report
		printed string
		code    int
	}{
		{"executes", func(p *Plan) { execute(p, "/bin/sh", "sh", "-c", `echo "$A|$#"; env | wc -l; exit 3`, "0", "1") }, Report{Executing: true}, "b c|1\n3\n", 3},
		{"step_fails", func(p *Plan) { p.Add(bad); execute(p, "/bin/echo", "echo", "x") }, Report{Label: bad.Label, Errno: syscall.EBADF}, "", 126},
		{"step_is_tolerated", func(p *Plan) { p.Add(tolerated); execute(p, "/bin/echo", "echo", "x") }, Report{Executing: true}, "x\n", 0},
		{"step_skips", func(p *Plan) { p.Add(skipping); p.Add(bad); execute(p, "/bin/echo", "echo", "x") }, Report{Executing: true}, "x\n", 0},
		{"not_executed", func(p *Plan) { execute(p, "/nothing", "x") }, Report{Executing: true, Label: "execute", Errno: syscall.ENOENT}, "", 126},
		{"empty", func(*Plan) {}, Report{}, "", 126},
		{"results", func(p *Plan) {
			p.Add(Call{Label: "copy", Number: syscall.SYS_DUP, Args: []Arg{Number(1)}, Result: 1})
			text := p.Bytes([]byte("12345678xx\n"))
			p.Store(text, 0, 8, Number(0x6867666564636261))
			p.Add(Call{Label: "write", Number: syscall.SYS_WRITE, Args: []Arg{Result(1).Arg(), text, Number(11)}})
			p.Add(Call{Label: "end", Number: syscall.SYS_EXIT_GROUP, Args: []Arg{Number(0)}})
		}, Report{Executing: true}, "abcdefghxx\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var p Plan
			tt.plan(&p)
			got, printed, code := start(t, p.Encode())
			if got != tt.want || printed != tt.printed || code != tt.code {
				t.Errorf("got %+v, %q, %d", got, printed, code)
			}
		})
	}
}

func TestShimRefusesOtherTexts(t *testing.T) {
	t.Parallel()
	var p Plan
	execute(&p, "/bin/echo", "echo", "x")
	good := p.Encode()
	for name, text := range map[string][]byte{
		"other": bytes.Repeat([]byte("x"), 100), "short": good[:40], "nothing": nil, "long": append(bytes.Clone(good[:8]), bytes.Repeat([]byte{0xff}, 64)...),
	} {
		if got, printed, code := start(t, text); got.Executing || printed != "" || code != 126 {
			t.Errorf("%s: got %+v, %q, %d", name, got, printed, code)
		}
	}
}

func FuzzDecode(f *testing.F) {
	var p Plan
	execute(&p, "/bin/echo", "echo", "x")
	f.Add(p.Encode())
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		words := make([]uint64, (len(b)+7)/8)
		if len(words) > 0 {
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(b)), b)
		}
		p, ok := decode(words)
		if !ok {
			return
		}
		for _, s := range p.steps {
			_ = p.data[s.label[0] : s.label[0]+s.label[1]]
			if s.store {
				_ = p.data[s.number : s.number+uint64(s.size)]
			}
			for i, k := range s.kinds {
				if k == address {
					_ = p.data[s.args[i]]
				}
			}
		}
	})
}
