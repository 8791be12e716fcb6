package draft

import (
	"cmp"
	"fmt"
	"strings"

	"loki/internal/base/text"
	"loki/internal/workflow/graph"
)

// Does says in a line what a node does: its description or, without one, what its fields say. It also names the compensation.
func Does(n *graph.Node) string {
	line := work(n)
	if n.Compensate != "" {
		line += "; if the run fails later, " + n.Compensate + " undoes it"
	}
	return line
}

func work(n *graph.Node) string {
	if n.Description != "" {
		return oneLine(n.Description)
	}
	switch {
	case n.LLM != nil:
		text := "asks " + cmp.Or(n.LLM.Model, "the model")
		if len(n.LLM.Tools) > 0 {
			text += ", with " + strings.Join(n.LLM.Tools, ", ")
		}
		return text + ": " + oneLine(n.LLM.Prompt.Source)
	case n.Script != nil:
		return "runs " + n.Script.Script
	case n.Approval != nil:
		return "asks you to choose " + strings.Join(n.Approval.Options, ", ") + ": " + oneLine(n.Approval.Question.Source)
	case n.Input != nil:
		return "asks you: " + oneLine(n.Input.Question.Source)
	case n.Map != nil:
		line := fmt.Sprintf("runs %s for each of %s", n.Map.Branch, n.Map.Over.Source)
		if terms := n.Map.Terms(); len(terms) > 0 {
			line += " (" + strings.Join(terms, ", ") + ")"
		}
		return line
	case n.Agent != nil:
		return "has agent " + n.Agent.Agent + " work on: " + oneLine(n.Agent.Prompt.Source)
	case n.RAG != nil:
		return "searches " + strings.Join(n.RAG.Documents, ", ")
	case n.Sub != nil:
		where := ""
		if n.Sub.File != "" {
			where = " of " + n.Sub.File
		}
		return fmt.Sprintf("runs a graph of %s%s", text.Count(len(n.Sub.Graph.Nodes), "node"), where)
	case n.Tool != nil:
		return strings.TrimSpace("calls " + n.Tool.Tool + " " + oneLine(n.Tool.Arguments.Source.Value().String()))
	case n.End != nil:
		return "ends with " + cmp.Or(oneLine(n.End.Output.Source), "nothing")
	}
	return string(n.Type)
}

// oneLine returns a text with blanks in place of line ends.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
