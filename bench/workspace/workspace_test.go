// Package workspace_test measures what the files of a repository that instruct cost at the start of a question.
package workspace_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// build builds the program, and returns its path, a directory, and what writes files.
func build(b *testing.B) (program, dir string, write func(name, text string)) {
	dir = b.TempDir()
	program = filepath.Join(dir, "loki")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "loki/cmd/loki")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return program, dir, func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// fill makes 10,000 files, a directory for each ten.
func fill(write func(name, text string), work string) {
	for i := range 10_000 {
		write(filepath.Join(work, fmt.Sprint("p", i/1000), fmt.Sprint("d", i/10%100), fmt.Sprint("f", i)), "")
	}
}

// BenchmarkIgnore starts the program in turn in 10,000 files with and without an ignore file. A model runs one command, for which the files
// are looked through.
func BenchmarkIgnore(b *testing.B) {
	program, dir, write := build(b)
	work, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	fill(write, work)
	write(filepath.Join(work, ".git", "HEAD"), "ref: refs/heads/main\n")
	write(filepath.Join(home, "config.yaml"), "model: builtin:script\nenabled_tools: [execute_command]\n")
	write(filepath.Join(home, "rules.yaml"), "rules:\n  - match: {turn: 1}\n    tool_calls: [{name: execute_command, arguments: {command: 'true'}}]\ndefault: {reply: done}\n")
	file := filepath.Join(work, ".aiignore")
	var times [2][]float64
	for b.Loop() {
		for i := range times {
			if _ = os.Remove(file); i == 1 {
				write(file, "*.pem\nsecrets/\nd7/f7?\n!keep\n")
			}
			cmd := exec.CommandContext(b.Context(), program, "hello")
			cmd.Dir, cmd.Env = work, []string{"HOME=" + home, "LOKI_CONFIG_DIR=" + home, "PATH=" + os.Getenv("PATH"), "LOKI_SCRIPT_FILE=" + filepath.Join(home, "rules.yaml")}
			began := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			times[i] = append(times[i], time.Since(began).Seconds()*1000)
		}
	}
	for i := range times {
		slices.Sort(times[i])
	}
	without, with := times[0][len(times[0])/2], times[1][len(times[1])/2]
	b.ReportMetric(with, "ms-with")
	b.ReportMetric(without, "ms-without")
	b.ReportMetric(with/without, "with/without")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStart starts the program in turn with and without the instructions, ignore files, skills and memory of a repository of 10,000
// files, a directory for each ten, and reports the medians in milliseconds and their ratio. Nothing is asked: a dry run prints what would
// be sent.
func BenchmarkStart(b *testing.B) {
	program, dir, write := build(b)
	work, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	fill(write, work)
	for i := range 10 {
		write(filepath.Join(work, fmt.Sprint("p", i), "AGENTS.md"), "Use tabs.\n")
		write(filepath.Join(work, ".agents", "skills", fmt.Sprint("skill-", i), "SKILL.md"), fmt.Sprintf("---\nname: skill-%d\ndescription: Does things.\n---\nDo them.\n", i))
	}
	write(filepath.Join(work, ".git", "HEAD"), "ref: refs/heads/main\n")
	write(filepath.Join(work, "AGENTS.md"), "Use tabs.\n")
	write(filepath.Join(work, ".aiignore"), "*.pem\n")
	config := "model: builtin:echo\nenabled_tools: [fs_cat]\ntrusted_dirs: [" + work + "]\n"
	with, without := filepath.Join(home, "with"), filepath.Join(home, "without")
	write(filepath.Join(with, "config.yaml"), config+"workspace_instructions: always\n")
	write(filepath.Join(without, "config.yaml"), config+"workspace_instructions: off\nskills: none\nmemory: off\n")
	times := make(map[string][]time.Duration)
	run := func(home string) time.Duration {
		cmd := exec.CommandContext(b.Context(), program, "--dry-run", "hello")
		cmd.Dir, cmd.Env = work, []string{"HOME=" + home, "LOKI_CONFIG_DIR=" + home, "PATH=" + os.Getenv("PATH")}
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		return time.Since(began)
	}
	run(with)
	run(without)
	for b.Loop() {
		for _, home := range []string{with, without} {
			times[home] = append(times[home], run(home))
		}
	}
	median := func(home string) float64 {
		slices.Sort(times[home])
		return times[home][len(times[home])/2].Seconds() * 1000
	}
	b.ReportMetric(median(with), "ms-with")
	b.ReportMetric(median(without), "ms-without")
	b.ReportMetric(median(with)/median(without), "with/without")
	b.ReportMetric(0, "ns/op")
}
