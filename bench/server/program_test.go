//go:build unix

package server_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loki/internal/base/process/npmtest"
	"loki/internal/frontend/cli"
	"loki/internal/frontend/repl"
	"loki/internal/frontend/server"
)

// asProgram is set in a process that is to be the program and not the benchmark.
const asProgram = "LOKI_BENCH_PROGRAM"

// profileFile names the file for a CPU profile of the server.
const profileFile = "LOKI_BENCH_PROFILE"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		usage := make(chan os.Signal, 1)
		signal.Notify(usage, syscall.SIGUSR1)
		go func() { // ends with the process
			for range usage {
				var s runtime.MemStats
				for range 4 { // each collection of garbage halves the stacks that are too large
					debug.FreeOSMemory()
				}
				runtime.ReadMemStats(&s)
				fmt.Fprintf(os.Stderr, "in use %d\n", s.HeapInuse+s.StackInuse)
			}
		}()
		profile, _ := os.Create(os.Getenv(profileFile))
		_ = pprof.StartCPUProfile(profile)
		status := cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{REPL: repl.Run, Server: server.Serve})
		pprof.StopCPUProfile()
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// program is a process that serves.
type program struct {
	url   string
	cmd   *exec.Cmd
	lines chan string // of standard error or output, after the first
}

// start starts a process that prints its address, and ends it with the benchmark.
func start(b *testing.B, cmd *exec.Cmd, address func(line string) (url string, ok bool)) *program {
	b.Helper()
	out, err := os.CreateTemp(b.TempDir(), "output")
	if err != nil {
		b.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	if cmd.Stdout == nil {
		cmd.Stdout = writer
	}
	cmd.Stderr = writer
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_ = writer.Close()
	p := &program{cmd: cmd, lines: make(chan string, 100)}
	found := make(chan string, 1)
	go func() { // ends with the process
		defer close(p.lines)
		serving := false
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			line := lines.Text()
			fmt.Fprintln(out, line)
			if url, ok := address(line); ok && !serving {
				serving = true
				found <- url
			} else if strings.HasPrefix(line, "in use ") {
				p.lines <- line
			}
		}
		if !serving {
			found <- ""
		}
	}()
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		done := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		done.Stop()
		if b.Failed() {
			text, _ := os.ReadFile(out.Name())
			b.Logf("%s", text)
		}
	})
	if p.url = <-found; p.url == "" {
		b.Fatal("the server did not start")
	}
	return p
}

// startLoki starts a server. files are those of its configuration directory.
func startLoki(b *testing.B, files map[string]string) *program {
	b.Helper()
	return startLokiIn(b, b.TempDir(), files)
}

// startLokiIn is startLoki in a working directory.
func startLokiIn(b *testing.B, work string, files map[string]string) *program {
	b.Helper()
	dir := b.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self, "--serve", "127.0.0.1:0")
	cmd.Dir = work
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LOKI_CONFIG_DIR=" + dir, "LOKI_STATE_DIR=" + filepath.Join(dir, "state"),
		"XDG_CACHE_HOME=" + filepath.Join(dir, "cache"), asProgram + "=1", profileFile + "=" + os.Getenv(profileFile),
	}
	return start(b, cmd, func(line string) (string, bool) { return strings.CutPrefix(line, "listening on ") })
}

// startGateway starts the gateway of Portkey, nil if npm is missing.
func startGateway(b *testing.B) *program {
	b.Helper()
	modules := npmtest.Install(b, filepath.Join("testdata", "npm"))
	cmd := exec.Command("node", filepath.Join("testdata", "npm", "gateway.mjs"))
	cmd.Env = append(os.Environ(), "GATEWAY_MODULES="+modules, "NODE_ENV=production")
	in, err := cmd.StdinPipe() // the gateway ends when it is closed
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close() })
	return start(b, cmd, func(line string) (string, bool) { return line, strings.HasPrefix(line, "http://127.0.0.1:") })
}

// cpu returns the processor time that a process has used.
func (p *program) cpu(b *testing.B) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0 // not Linux
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // ticks of a hundredth of a second
}

// memory returns the bytes that Go uses after a garbage collection, and those that the process has in
// memory (RSS).
func (p *program) memory(b *testing.B) (used, rss float64) {
	b.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		b.Fatal(err)
	}
	fmt.Sscanf(<-p.lines, "in use %f", &used)
	return used, p.resident()
}

// resident returns the bytes that the process has in memory (RSS).
func (p *program) resident() (rss float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0 // not Linux
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	fmt.Sscanf(after, "%f", &rss)
	return rss * 1024
}
