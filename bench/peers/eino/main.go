// Command eino is eino's side of the comparison of graph engines. What it reads and
// prints is described in the command of Loki's side. It has no durable cases, because eino
// writes a checkpoint only when a run is interrupted.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

func main() {
	if err := serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "eino:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	hello, err := json.Marshal(map[string]string{
		"name": "eino", "version": version(), "runtime": runtime.Version(),
		"without": "eino writes a checkpoint only when a run is interrupted, not in every step.",
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", hello)
	made := make(map[string]bench)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var name string
		var runs int
		if _, err := fmt.Sscan(lines.Text(), &name, &runs); err != nil {
			return fmt.Errorf("request %q: %w", lines.Text(), err)
		}
		maker, ok := makers(ctx)[name]
		if !ok {
			fmt.Fprintln(out, "-")
			continue
		}
		run, ok := made[name]
		if !ok {
			if run, err = maker(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			made[name] = run
		}
		begin := time.Now()
		for range runs {
			if err := run(ctx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		fmt.Fprintln(out, time.Since(begin).Nanoseconds())
	}
	return lines.Err()
}

// version is that of eino in this program.
func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == "github.com/cloudwego/eino" {
			return m.Version
		}
	}
	return "of unknown version"
}
