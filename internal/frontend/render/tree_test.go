package render_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"loki/internal/base/text/sample"
	"loki/internal/frontend/render"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// act is an event of a show and when it happens.
type act struct {
	after time.Duration // since the one before
	src   event.Source
	body  event.Body
}

// show is a list of events that is made in order.
type show struct {
	acts []act
	root event.Source
}

func (s *show) add(after time.Duration, src event.Source, bodies ...event.Body) {
	for _, b := range bodies {
		s.acts = append(s.acts, act{after, src, b})
		after = 0
	}
}

func tokensOf(in, out int) chat.Usage {
	return chat.Usage{InputTokens: in, OutputTokens: out, Cost: float64(in+4*out) / 1e6}
}

// research is an agent that starts n children side by side, which search and read. One of
// them asks, one has a child of its own, one fails and one works through a todo list.
func research(n int) []act {
	s := &show{root: event.Source{Run: "0198c2a4", Agent: "architect"}}
	call := func(id, name, args string) event.ToolCall { return event.ToolCall{ID: id, Name: name, Arguments: args} }
	result := func(id, name string) event.ToolResult { return event.ToolResult{ID: id, Name: name, Text: "{}"} }
	s.add(0, s.root, event.Started{Model: "openai:gpt-5"}, event.ModelCall{Model: "openai:gpt-5", Turn: 1})
	s.add(800*ms, s.root, event.Reply{Model: "openai:gpt-5", Stop: chat.StopToolCalls, Usage: tokensOf(2100, 400)})
	var children []event.Source
	var ids []string
	agents := []string{"explore", "explore", "explore", "critic", "écrivain", "研究员", "a-name-that-is-much-longer-than-it-should-be"}
	for i := range n {
		name := agents[i%len(agents)]
		child := s.root.Child(name, fmt.Sprintf("agent_%s_%08x", name, i))
		children, ids = append(children, child), append(ids, child.AgentID)
		id := fmt.Sprintf("spawn%d", i)
		s.add(20*ms, s.root, call(id, "agent__spawn", `{"agent":"`+name+`","prompt":"Look"}`))
		s.add(5*ms, child, event.Started{Model: "openai:gpt-5-mini", Prompt: fmt.Sprintf("Find out how part %d of the parser reports its errors", i)}.Under(s.root),
			event.ModelCall{Model: "openai:gpt-5-mini", Turn: 1})
		s.add(5*ms, s.root, result(id, "agent__spawn"))
	}
	s.add(100*ms, s.root, event.AgentWaits{On: ids})
	grandchild := children[0].Child("scribe", "agent_scribe_0")
	for round := range 4 {
		for i, child := range children {
			switch {
			case i%5 == 4 && round >= 2:
				continue // over
			case i == 3 && round == 1:
				s.add(60*ms, child, event.Escalation{ID: "esc_1", Text: "[ask] Which of the two parsers is meant?", Options: []string{"old", "new"}})
				continue
			case i == 3 && round == 3:
				s.add(60*ms, child, event.EscalationAnswered{ID: "esc_1", Text: "new"})
			case i == 0 && round == 1:
				s.add(60*ms, child, event.ToolCall{ID: "s", Name: "agent__spawn", Arguments: "{}"})
				s.add(0, grandchild, event.Started{Model: "m", Prompt: "Write it down"}.Under(child), event.ModelCall{})
				s.add(0, child, event.ToolResult{ID: "s", Name: "agent__spawn"}, event.AgentWaits{On: []string{grandchild.AgentID}})
				continue
			case i == 0 && round == 2:
				continue
			}
			if i == 2 {
				todos := []event.Todo{{ID: 1, Desc: "list the files", Done: round > 0}, {ID: 2, Desc: "read them", Done: round > 1}, {ID: 3, Desc: "sum up"}}
				s.add(0, child, event.TodoUpdated{Goal: "errors", Todos: todos})
			}
			id := fmt.Sprintf("%d/%d", round, i)
			s.add(60*ms, child, event.Reply{Model: "openai:gpt-5-mini", Stop: chat.StopToolCalls, Usage: tokensOf(900+37*i, 80+i)})
			name, args := "fs_grep", `{"pattern":"errors\\.New","path":"internal/parser"}`
			if i%2 == 1 {
				name, args = "execute_command", `{"command":"go test -run 'Parse' ./internal/parser/... 2>&1 | grep -v ok"}`
			}
			s.add(0, child, call(id, name, args))
			if i%3 != 0 {
				s.add(40*ms, child, result(id, name), event.ModelCall{Turn: 2})
			}
			if i%5 == 4 && round == 1 {
				fin := event.Finished{Output: "found", Outcome: "done", Duration: 3 * time.Second, Own: tokensOf(2000, 300), Usage: tokensOf(2000, 300)}
				if i == 9 {
					fin.Outcome, fin.Error = "failed", "model openai:gpt-5-mini: too many requests"
				}
				s.add(10*ms, child, fin)
			}
		}
	}
	s.add(50*ms, grandchild, event.Finished{Outcome: "done", Duration: 2 * time.Second, Own: tokensOf(500, 50), Usage: tokensOf(500, 50)})
	s.add(0, children[0], event.AgentWaits{})
	for i, child := range children {
		if i%5 != 4 {
			s.add(120*ms, child, event.Finished{Output: "found", Outcome: "done", Duration: 5 * time.Second, Usage: tokensOf(4000, 500), Own: tokensOf(3900, 450)})
		}
	}
	s.add(100*ms, s.root, event.AgentWaits{}, event.ModelCall{Turn: 3})
	s.add(600*ms, s.root, event.Delta{Text: "The parser reports its errors in two ways.\n"})
	s.add(100*ms, s.root, event.Reply{Model: "openai:gpt-5", Text: "The parser reports its errors in two ways.\n", Stop: chat.StopEnd, Usage: tokensOf(9000, 700)},
		event.Finished{Output: "The parser reports its errors in two ways.\n", Duration: 9 * time.Second, Usage: tokensOf(60000, 9000)})
	return s.acts
}

// perform plays acts on a stage and calls look after each.
func (s *stage) perform(acts []act, look func(i int)) {
	for i, a := range acts {
		if a.after > 0 {
			s.wait(a.after)
		}
		s.at(a.src, a.body)
		if look != nil {
			look(i)
		}
	}
}

// TestTree shows twenty children in a usual terminal, and fewer in a small one.
func TestTree(t *testing.T) {
	for _, tt := range []struct {
		name                    string
		columns, rows, children int
		color                   bool
	}{
		{"80x24", 80, 24, 20, false},
		{"40x20", 40, 20, 20, false},
		{"80x24_four", 80, 24, 4, true},
		{"120x50", 120, 50, 20, false},
		{"20x8", 20, 8, 5, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := play(t, setup{terminal: true, columns: tt.columns, rows: tt.rows, color: tt.color, answer: true, outTerminal: true}, func(s *stage) {
				at := time.Duration(0)
				next := 2 * time.Second
				for _, a := range research(tt.children) {
					if at += a.after; at >= next {
						s.shot(next.String())
						next += 2 * time.Second
					}
					s.perform([]act{a}, nil)
				}
				s.shot("end")
			})
			golden(t, "tree/"+tt.name, s.shots.String())
		})
	}
}

// TestTreeOffTerminal: lines say who begins, waits and ends.
func TestTreeOffTerminal(t *testing.T) {
	for name, o := range map[string]render.NarratorOptions{"plain": {}, "plain_v": {Verbose: 1}, "plain_quiet": {Quiet: true}} {
		s := play(t, setup{narrator: o, answer: true}, func(s *stage) { s.perform(research(5), nil) })
		golden(t, "tree/"+name, s.plain.String())
		if got := s.out.String(); got != "The parser reports its errors in two ways.\n" {
			t.Errorf("%s: the answer is %q", name, got)
		}
	}
}

// hostile puts what a terminal would obey into every text of acts that others may have written.
func hostile(acts []act) {
	const evil = "\x1b[2J\x1b]0;title\x07\r\u202e"
	for i, a := range acts {
		a.src.Agent += evil
		switch b := a.body.(type) {
		case event.Started:
			b.Prompt += evil
			a.body = b
		case event.ToolCall:
			b.Name, b.Arguments = b.Name+evil, b.Arguments+evil
			a.body = b
		case event.Escalation:
			b.Text += evil
			a.body = b
		case event.TodoUpdated:
			b.Goal, b.Todos = b.Goal+evil, []event.Todo{{ID: 1, Desc: evil}}
			a.body = b
		case event.Finished:
			b.Outcome, b.Error = b.Outcome+evil, b.Error+evil
			a.body = b
		}
		acts[i] = a
	}
}

// TestTreeFits plays at random in terminals of all sizes: no live line is as wide as the
// screen, there are never more of them than it has room for, none is left behind, and the
// terminal obeys none of the texts.
func TestTreeFits(t *testing.T) {
	live := regexp.MustCompile("^ *[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏✓✗?…]")
	goesUp := regexp.MustCompile("\x1b\\[(\\d+)A")
	for seed := uint64(0); seed < 24; seed += uint64(sample.Step(3)) {
		random := rand.New(rand.NewPCG(seed, 1))
		columns, rows := 4+random.IntN(140), 3+random.IntN(50)
		acts := research(5 + random.IntN(30))
		if seed%2 == 1 {
			hostile(acts)
		}
		s := play(t, setup{terminal: true, columns: columns, rows: rows, narrator: render.NarratorOptions{Verbose: random.IntN(2)}}, func(s *stage) {
			s.perform(acts[:len(acts)*(50+random.IntN(51))/100], nil)
		})
		raw := s.vt.raw()
		for line := range strings.Lines(escapes.ReplaceAllString(raw, "")) {
			line = strings.Trim(line, "\r\n")
			if w := displayed(line); w > columns-1 && live.MatchString(line) {
				t.Fatalf("seed %d: at %d columns a live line takes %d: %q", seed, columns, w, line)
			}
		}
		for _, up := range goesUp.FindAllStringSubmatch(raw, -1) {
			if n, err := strconv.Atoi(up[1]); err != nil || n > max(rows/2, rows-6) {
				t.Fatalf("seed %d: %s live lines on %d rows", seed, up[1], rows)
			}
		}
		if strings.Contains(raw, "\x1b[2J") || strings.ContainsAny(raw, "\x07\u202e") || strings.Contains(raw, "\x1b]") {
			t.Errorf("seed %d: the terminal obeys a text", seed)
		}
		if got := s.vt.screen(); strings.ContainsAny(got, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") {
			t.Errorf("seed %d: after the end something is still live:\n%s", seed, got)
		}
	}
}

// TestTreeSendsChanges: rows that have not changed are not sent again, and nothing is if none has.
func TestTreeSendsChanges(t *testing.T) {
	play(t, setup{terminal: true, columns: 80, rows: 24}, func(s *stage) {
		a, b := s.run.Child("critic", "agent_critic_1"), s.run.Child("scribe", "agent_scribe_1")
		s.emit(event.Started{Model: "m"})
		s.at(a, event.Started{Model: "m", Prompt: "Look"}.Under(s.run))
		s.at(b, event.Started{Model: "m", Prompt: "Write"}.Under(s.run))
		s.at(a, event.Finished{Outcome: "done", Duration: time.Second})
		s.emit(event.AgentWaits{On: []string{b.AgentID}})
		s.wait(300 * ms)
		before := len(s.vt.raw())
		s.wait(600 * ms)
		sent := s.vt.raw()[before:]
		if strings.Contains(sent, "critic") || strings.Contains(sent, "waits") || strings.Count(sent, "scribe") != 3 {
			t.Errorf("in 600 ms is sent %q", sent)
		}
		s.at(b, event.Escalation{ID: "esc_1", Text: "Which?"})
		s.wait(200 * ms)
		before = len(s.vt.raw())
		s.wait(500 * ms)
		if sent := s.vt.raw()[before:]; strings.Contains(sent, "asks") && strings.Count(sent, "asks") > 1 {
			t.Errorf("of rows that stand still is sent %q", sent)
		}
	})
}

// survey is a graph whose map node runs an agent for each of three elements, and whose next
// node is an agent that asks the user.
func survey(s *stage) {
	zero, one, two := 0, 1, 2
	s.emit(event.Started{Graph: "survey", Node: "each"})
	s.node("each", event.NodeStarted{NodeType: "map", Visit: 1})
	for _, item := range []*int{&two, &one, &zero} {
		i := *item
		child := s.run.Child("reader", fmt.Sprintf("graph_agent_reader_%08d", i))
		s.at(child, event.Started{Graph: "reader", Node: "read", Prompt: "Read it"}.Under(event.Source{Node: "each", Item: item}))
		read := child
		read.Node = "read"
		s.at(read, event.NodeStarted{NodeType: "llm", Visit: 1})
		s.at(read, event.Reply{Model: "m", Stop: chat.StopEnd, Usage: tokensOf(1000, 100)})
		if i == 1 {
			s.at(read, event.ToolOutput{Name: "deploy", Text: "1 of 2 copied"})
			s.at(child, event.Finished{Outcome: "done", Duration: 200 * ms, Own: tokensOf(1000, 100), Usage: tokensOf(1000, 100)})
			s.node("each", event.MapProgress{Done: 1, Total: 3})
		}
	}
	s.wait(300 * ms)
	s.shot("three read")
	for _, i := range []int{0, 2} {
		s.at(s.run.Child("reader", fmt.Sprintf("graph_agent_reader_%08d", i)), event.Finished{Outcome: "done", Duration: 400 * ms, Own: tokensOf(1000, 100)})
	}
	s.node("each", event.NodeFinished{NodeType: "map", Duration: 400 * ms, Targets: []string{"check"}})
	s.node("check", event.NodeStarted{NodeType: "agent", Visit: 1})
	critic := s.run.Child("critic", "graph_agent_critic_1")
	s.at(critic, event.Started{Model: "m", Prompt: "Check it"}.Under(event.Source{Node: "check"}))
	s.at(critic, event.Question{ID: "check/1.1", Text: "May I run make?", Options: []string{"yes", "no"}})
	s.wait(300 * ms)
	s.shot("asked")
	s.screen.Pause()
	s.shot("while the user is asked")
	s.screen.Resume()
	s.at(critic, event.Answer{ID: "check/1.1", Text: "yes"})
	s.at(critic, event.Finished{Outcome: "timed_out", Error: "no event for 10m0s", Code: "limit", Duration: 10 * time.Minute})
	s.node("check", event.NodeFinished{NodeType: "agent", Duration: 600 * ms, Targets: []string{"fin"}, Error: "critic timed out"})
	s.node("fin", event.NodeStarted{NodeType: "llm", Visit: 1})
	s.at(s.run.Child("scribe", "agent_scribe_1"), event.Started{Model: "m", Prompt: "Sum up"}.Under(event.Source{Node: "fin"}))
	s.node("fin", event.AgentWaits{On: []string{"agent_scribe_1"}})
	s.wait(300 * ms)
	s.shot("a node waits")
	s.at(s.run.Child("scribe", "agent_scribe_1"), event.Finished{Outcome: "done", Duration: 300 * ms})
	s.node("fin", event.AgentWaits{})
	s.node("fin", event.NodeFinished{NodeType: "llm", Duration: 300 * ms, End: true})
	s.emit(event.Finished{Output: "all read", Duration: time.Second, Steps: 2})
	s.shot("end")
}

// planning is an agent that works through a todo list, with a child in the middle.
func planning(s *stage) {
	list := func(done int) event.TodoUpdated {
		b := event.TodoUpdated{Goal: "Mend the parser"}
		for i, desc := range []string{"write a test", "mend it", "run all tests", "write it down", "commit"} {
			b.Todos = append(b.Todos, event.Todo{ID: i + 1, Desc: desc, Done: i < done})
		}
		return b
	}
	s.emit(event.Started{Model: "m"})
	s.emit(event.ToolCall{ID: "1", Name: "todo__init", Arguments: `{"goal":"Mend the parser"}`})
	s.emit(event.TodoUpdated{Goal: "Mend the parser"})
	s.emit(event.ToolResult{ID: "1", Name: "todo__init", Text: `{"status":"ok"}`})
	s.emit(list(0))
	s.wait(300 * ms)
	s.shot("a list")
	s.emit(event.ToolCall{ID: "2", Name: "fs_patch", Arguments: `{"path":"parse.go"}`})
	s.emit(event.ToolResult{ID: "2", Name: "fs_patch", Text: "ok"})
	s.emit(list(2))
	s.wait(200 * ms)
	s.shot("two done")
	s.emit(event.Delta{Text: "Two are done."})
	s.wait(200 * ms)
	s.shot("the model writes")
	s.emit(event.Reply{Model: "m", Text: "Two are done.", Stop: chat.StopEnd, Usage: tokensOf(100, 10)})
	s.emit(event.AutoContinue{Count: 1, Max: 10, Open: 3})
	child := s.run.Child("coder", "agent_coder_1")
	s.at(child, event.Started{Model: "m", Prompt: "Run all tests"}.Under(s.run))
	s.at(child, event.Retry{Attempt: 1, Error: "too many requests"})
	s.at(child, event.TodoUpdated{Todos: []event.Todo{{ID: 1, Desc: "go test", Done: true}, {ID: 2, Desc: "go vet"}}})
	s.at(child, event.AutoContinue{Count: 1, Max: 10, Open: 1})
	s.at(child, event.MessageSent{To: "", Text: "All tests pass"})
	s.emit(event.TaskUpdated{ID: "1", Subject: "Test", Status: "in_progress", Owner: "auto:coder"})
	s.wait(200 * ms)
	s.shot("a child runs the tests")
	s.at(child, event.Finished{Outcome: "done", Duration: 200 * ms})
	s.emit(list(5))
	s.emit(event.Delta{Text: "Done."})
	s.emit(event.Reply{Model: "m", Text: "Done.", Stop: chat.StopEnd, Usage: tokensOf(100, 10)})
	s.emit(event.Finished{Output: "Two are done.\nDone.", Duration: time.Second})
	s.shot("end")
}

// TestTreeOfMany: not each of many children has a line at the end, but each that failed; those that
// were canceled with the run are counted.
func TestTreeOfMany(t *testing.T) {
	for _, tt := range []struct {
		outcome string
		n       int
		want    string
	}{
		{"done", 100, "▸ 80 agents done, 800 tokens\n"},
		{"done", 39, "▸ critic-39 done in 0ms, 10 tokens\n"},
		{"failed", 50, "▸ critic-50 FAILED after 0ms, 10 tokens -- reason\n"},
		{"canceled", 5, "▸ 5 agents canceled, 50 tokens\n"},
		{"canceled", 3, "▸ critic-3 canceled after 0ms, 10 tokens\n"},
	} {
		s := play(t, setup{terminal: true, columns: 80, rows: 24}, func(s *stage) {
			s.emit(event.Started{Model: "m"})
			for i := range tt.n {
				child := s.run.Child("critic", fmt.Sprintf("agent_critic_%08x", i))
				s.at(child, event.Started{Model: "m"}.Under(s.run))
				fin := event.Finished{Outcome: tt.outcome, Own: chat.Usage{InputTokens: 10}}
				if tt.outcome != "done" {
					fin.Error = "reason"
				}
				s.at(child, fin)
			}
			s.emit(event.Finished{})
		})
		if got := s.vt.screen(); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%d children %s: at the end is\n%s", tt.n, tt.outcome, got)
		}
	}
}

// TestTreeScenes plays scenes on a terminal and off it.
func TestTreeScenes(t *testing.T) {
	for name, scene := range map[string]func(*stage){"survey": survey, "planning": planning} {
		for mode, o := range map[string]render.NarratorOptions{"": {}, "_v": {Verbose: 1}} {
			t.Run(name+mode, func(t *testing.T) {
				golden(t, "tree/"+name+mode, play(t, setup{narrator: o, answer: true}, scene).plain.String())
				s := play(t, setup{terminal: true, columns: 80, rows: 24, narrator: o, answer: true, outTerminal: true}, scene)
				golden(t, "tree/"+name+mode+".terminal", s.shots.String())
			})
		}
	}
}
