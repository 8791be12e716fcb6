package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// memoryNames are the cases whose peak of memory is measured, also with "/durable".
var memoryNames = []string{"chain_3", "burst_10000", "chain_1000", "react_agent_100", "subgraph_100", "wide_state_15x600"}

// memory is the most memory that a new process of a side had after one run of a case, in
// bytes; 0 if the side has no such case or the system does not say.
func memory(program *exec.Cmd, name string) (bytes int64, err error) {
	s, err := start(program)
	if err != nil {
		return 0, err
	}
	defer s.stop()
	if _, ok, err := s.ask(name, 1); err != nil || !ok {
		return 0, err
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", program.Process.Pid)) // Linux only
	return peak(string(status)), nil
}

// peak returns what the status of a process says of the most memory that it had.
func peak(status string) (bytes int64) {
	_, after, _ := strings.Cut(status, "VmHWM:")
	if _, err := fmt.Sscanf(after, "%d kB", &bytes); err != nil {
		return 0
	}
	return bytes * 1024
}

// memoryTable is the second part of the table.
func (t *table) memoryTable() string {
	if len(t.memory) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("| peak memory |")
	for _, s := range t.sides[:len(t.memory[0].bytes)] {
		fmt.Fprintf(&b, " %s |", s.about().Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(t.memory[0].bytes)) + "\n")
	for _, r := range t.memory {
		fmt.Fprintf(&b, "| %s |", caseTitle(r.name))
		for _, n := range r.bytes {
			if n == 0 {
				b.WriteString(" - |")
				continue
			}
			fmt.Fprintf(&b, " %d MB |", (n+500_000)/1_000_000)
		}
		b.WriteString("\n")
	}
	b.WriteString("\nThe most memory that a new process had (resident set), after one run of the case.\n\n")
	return b.String()
}

// memoryRow is what the sides need for a case.
type memoryRow struct {
	name  string
	bytes []int64 // by side
}

// caseTitle is a case as the tables name it.
func caseTitle(name string) string {
	name, durable := strings.CutSuffix(name, "/durable")
	if durable {
		name += ", checkpoints"
	}
	return name
}
