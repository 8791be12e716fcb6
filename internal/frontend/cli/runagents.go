package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/text"
	"loki/internal/frontend/api"
	"loki/internal/frontend/command/display"
)

// printAgents prints the agents of a run as a tree, with what each used.
func printAgents(w io.Writer, agents []api.RunAgent) error {
	rows := [][]string{{"AGENT", "STATUS", "TIME", "CALLS", "IN", "CACHED", "OUT", "REASONING", "COST", "TOTAL", "TOTAL COST", "PROMPT"}}
	for _, a := range agents {
		calls, took := 0, "-"
		for _, use := range a.Tools {
			calls += use.Calls
		}
		if a.Seconds > 0 {
			took = time.Duration(a.Seconds * float64(time.Second)).Round(time.Millisecond).String()
		}
		u := a.Usage
		rows = append(rows, []string{
			strings.Repeat("  ", a.Depth) + a.Name, strings.ReplaceAll(a.Status, "_", " "), took, strconv.Itoa(calls), strconv.Itoa(u.InputTokens),
			strconv.Itoa(u.CachedInputTokens), strconv.Itoa(u.OutputTokens), strconv.Itoa(u.ReasoningTokens), display.Cost(u), strconv.Itoa(a.Total.Total()), display.Cost(a.Total), text.OneLine(a.Prompt, display.PromptLength),
		})
	}
	if _, err := io.WriteString(w, "\nagents\n"+display.Table(rows, 2, 3, 4, 5, 6, 7, 8, 9, 10)); err != nil {
		return err
	}
	tools, failed := "", ""
	for _, a := range agents {
		var uses []string
		for _, use := range a.Tools {
			uses = append(uses, usesOf(use))
		}
		if len(uses) > 0 {
			tools += "  " + a.Name + ": " + strings.Join(uses, ", ") + "\n"
		}
		if a.AgentID != "" && a.Error != "" {
			failed += "  " + a.Name + ": " + oneLine(a.Error) + "\n"
		}
	}
	for _, section := range [][2]string{{"tools", tools}, {"errors", failed}} {
		if section[1] != "" {
			if _, err := io.WriteString(w, "\n"+section[0]+"\n"+section[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostCalls is how many calls of tools are shown unless all are wanted.
const mostCalls = 20

// printCalls prints the last calls of tools of a run, or all of them with their results.
func printCalls(b *strings.Builder, r api.RunDetail, all bool) {
	names := make(map[string]string) // of agents, by their ids
	for _, a := range r.Agents {
		names[a.AgentID] = a.Name
	}
	shown := r.Calls
	if len(shown) > 0 {
		b.WriteString("\ncalls of tools\n")
	}
	if more := len(shown) - mostCalls; more > 0 && !all {
		fmt.Fprintf(b, "  %s before these: -v\n", text.Count(more, "call"))
		shown = shown[more:]
	}
	for _, call := range shown {
		who := call.Node
		if call.AgentID != "" {
			who = cmp.Or(names[call.AgentID], call.AgentID)
		}
		if who != "" {
			who += ": "
		}
		took := "no result"
		if call.Result != nil {
			took = time.Duration(call.Seconds * float64(time.Second)).Round(time.Millisecond).String()
		}
		if call.Failed {
			took += ", failed: " + text.OneLine(*call.Result, display.PromptLength)
		}
		fmt.Fprintf(b, "  %s%s %s  %s\n", who, call.Name, text.OneLine(call.Arguments, display.PromptLength), took)
		if all && call.Result != nil && !call.Failed {
			b.WriteString("    " + text.OneLine(*call.Result, maxText) + "\n")
		}
	}
}

// usesOf returns how often a tool was called: fs_cat 3 (1 failed).
func usesOf(use api.ToolUse) string {
	shown := use.Name + " " + strconv.Itoa(use.Calls)
	if use.Failed > 0 {
		shown += fmt.Sprintf(" (%d failed)", use.Failed)
	}
	return shown
}
