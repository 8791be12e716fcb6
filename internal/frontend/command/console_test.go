package command

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/frontend/command/display"
)

// step is a submission and what comes of it.
type step struct {
	line string
	want string // what is printed, joined with |; ".*" stands for anything
	err  string // of the error, with its hint, in the same way; "" for none
}

// talk executes submissions on a console of a user who gives answers, and whose editor replaces the text
// of a file by edited or, behind a plus sign, adds to it.
func talk(t *testing.T, files map[string]string, answers []string, edited string, steps ...step) (*Console, *asktest.Scripted) {
	t.Helper()
	c, out := newConsole(t, files)
	asker := asktest.NewScripted(answers...)
	c.conv = c.App.Conversations().Begin(conversation.Options{Interactive: true, Caller: conversation.Caller{Events: c.Scope, Asker: asker}})
	c.Asker = asker
	c.Edit = func(_ context.Context, file string) error {
		if edited == "" {
			return nil
		}
		text := []byte(edited)
		if more, ok := strings.CutPrefix(edited, "+"); ok {
			old, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			text = append(old, more...)
		}
		return os.WriteFile(file, text, 0o600)
	}
	for _, s := range steps {
		*out = nil
		err := c.Do(t.Context(), s.line)
		message := ""
		if err != nil {
			message = strings.TrimSuffix(err.Error()+"; "+fault.HintOf(err), "; ")
		}
		if !matches(message, s.err) || s.err == "" && err != nil {
			t.Errorf("%s: error %q, want %q", s.line, message, s.err)
		}
		if got := strings.Join(*out, "|"); !matches(got, s.want) || s.want == "" && got != "" {
			t.Errorf("%s: prints %q, want %q", s.line, got, s.want)
		}
	}
	return c, asker
}

func TestUnknownCommands(t *testing.T) {
	talk(t, nil, nil, "",
		step{line: "   "},
		step{line: "", want: ""},
		step{line: ".", err: ". is not a command; .*.help"},
		step{line: ".rol x", err: ".rol is not a command; did you mean .role? All commands: .help"},
		step{line: ".info nothing", err: `.info has no part "nothing"; the parts: model, .*, all`},
		step{line: ".exit nothing", err: ".exit nothing is not a command; .*"},
		step{line: ".clear messages", err: ".clear messages is not a command; .*.empty session"},
		step{line: ".clear all", err: ".clear all is not a command; .*"},
		step{line: ".continue now", err: `.continue takes no argument, but "now" was given`},
		step{line: ".empty", want: "Usage: .empty session"},
		step{line: ".compress x", want: "Usage: .compress session"},
		step{line: ".save x", want: "Usage: .save last FILE\n .*.save session [NAME]"},
		step{line: ".edit", want: "Usage: .edit last\n.*.edit config\n .*"},
		step{line: ".model", want: "Usage: .model NAME"},
		step{line: ".role", want: "Usage: .role NAME [TEXT]"},
		step{line: ".set", want: "Usage: .set KEY VALUE\n  auto_continue .*\n  dry_run                  false       true or false\n.*"},
		step{line: ".set dry_run", want: "Usage: .set dry_run VALUE\n  now false; VALUE is true or false"},
		step{line: ".agent", want: "Usage: .agent NAME .*"},
		step{line: ".file", want: "Usage: .file SOURCE... [-- TEXT]\nA source is .*"},
		step{line: ".delete", want: "Usage: .delete KIND [NAME]\n  role        none\n.*  agent-data  none"},
		step{line: ".macro", want: "Usage: .macro NAME [ARGUMENT...]\n.*generate-commit-message .*"},
		step{line: ".vault", want: "Usage: .vault .*"},
		step{line: ".vault add", want: "Usage: .vault add NAME"},
		step{line: ".install", want: "Usage: .install .*"},
	)
}

func TestExit(t *testing.T) {
	c, _ := newConsole(t, nil)
	if err := c.Do(t.Context(), " .exit "); !errors.Is(err, ErrExit) {
		t.Error(err)
	}
}

func TestHelp(t *testing.T) {
	c, out := newConsole(t, nil)
	if err := c.Do(t.Context(), ".help"); err != nil {
		t.Fatal(err)
	}
	short := strings.Join(*out, "\n")
	if lines := strings.Split(short, "\n"); len(lines) > 22 || slices.ContainsFunc(lines, func(l string) bool { return len(l) > 80 }) {
		t.Errorf("the short help has %d lines:\n%s", len(lines), short)
	}
	*out = nil
	if err := c.Do(t.Context(), ".help all"); err != nil {
		t.Fatal(err)
	}
	help := strings.Join(*out, "\n")
	for _, row := range c.Commands() {
		if !strings.Contains(short+" ", "  "+row.Name) || !strings.Contains(help, "\n  "+row.Name) || !strings.Contains(help, row.Help) {
			t.Errorf("%s is not in the help", row.Name)
		}
		if row.Help == "" || row.Offered == nil || row.do == nil || !slices.Contains(groups(), row.Group) || strings.ToUpper(row.Help[:1]) != row.Help[:1] {
			t.Errorf("the row of %s is not complete: %+v", row.Name, row)
		}
	}
	talk(t, nil, nil, "",
		step{line: ".help vault", want: "Settings and program\n  .vault add|get|update|delete|list [NAME]  Keep secrets for settings"},
		step{line: ".help roles", want: "Roles\n  .prompt TEXT .*\n  .exit role .*"},
		step{line: ".help runs", want: "Runs and search\n  .search .*"},
		step{line: ".help .copy", want: "Chat\n  .copy [N] .*code"},
		step{line: ".help .file", want: "Chat\n  .file .*\n\nA source is .*"},
		step{line: ".help tips", want: "Tips\n.*"},
		step{line: ".help xyzzy", err: `no command has "xyzzy" in its help; .*`},
	)
}

// TestPlainWords: exit, quit, help and ? alone are commands of a user who types. All other texts, and those of macros, are
// for the model.
func TestPlainWords(t *testing.T) {
	for _, line := range []string{"exit", " quit\n"} {
		c, _ := newConsole(t, nil)
		if err := c.Do(t.Context(), line); !errors.Is(err, ErrExit) {
			t.Errorf("%q: %v", line, err)
		}
	}
	talk(t, map[string]string{"macros/leave.yaml": "steps: [exit]\n"}, nil, "model: builtin:echo\n",
		step{line: "help", want: "Chat .*"},
		step{line: "?", want: "Chat .*"},
		step{line: "help me with exit", want: "help me with exit"},
		step{line: "exit now", want: "exit now"},
		step{line: ":::help:::", want: "help"},
		step{line: ".macro leave", want: ">> exit|exit"},
	)
	c, out := newConsole(t, nil)
	c.Interactive = false // as on a server
	if err := c.Do(t.Context(), "exit"); errors.Is(err, ErrExit) {
		t.Errorf("%q, %v", *out, err)
	}
}

// TestInfo: what .info shows fits on a screen, and its parts have the rest.
func TestInfo(t *testing.T) {
	c, out := newConsole(t, nil)
	shown := func(line string) string {
		t.Helper()
		*out = nil
		if err := c.Do(t.Context(), line); err != nil {
			t.Fatal(err)
		}
		return strings.Join(*out, "\n") + "\n"
	}
	if short := shown(".info"); strings.Count(short, "\n") > 21 || !strings.Contains(short, "\nMore: .info model|") {
		t.Errorf("short:\n%s", short)
	}
	var parts []string
	for _, p := range display.InfoParts() {
		parts = append(parts, strings.Split(strings.TrimSpace(shown(".info "+p.Name)), "\n")...)
	}
	all := strings.Split(strings.TrimSpace(shown(".info all")), "\n")
	slices.Sort(parts)
	slices.Sort(all)
	if !slices.Equal(parts, all) {
		t.Errorf("parts\n%s\nall\n%s", strings.Join(parts, "\n"), strings.Join(all, "\n"))
	}
}

// TestOffered holds which commands are offered in which state.
func TestOffered(t *testing.T) {
	all := []Mode{}
	for i := range 32 {
		m := Mode{Role: i&1 > 0, Session: i&2 > 0, EmptySession: i&4 > 0, Knowledge: i&8 > 0, Agent: i&16 > 0}
		if !m.Session || !m.EmptySession {
			all = append(all, m)
		}
	}
	want := map[string]func(m Mode) bool{
		".edit config": func(m Mode) bool { return !m.Agent }, ".edit mcp-config": func(m Mode) bool { return !m.Agent },
		".prompt": func(m Mode) bool { return !m.Session && !m.Agent }, ".role": func(m Mode) bool { return !m.Session && !m.Agent },
		".info role": func(m Mode) bool { return m.Role },
		".edit role": func(m Mode) bool { return m.Role && !m.Session }, ".exit role": func(m Mode) bool { return m.Role && !m.Session },
		".save role":     func(m Mode) bool { return m.Role && !m.Session && !m.EmptySession },
		".session":       func(m Mode) bool { return !m.Session && !m.EmptySession },
		".empty session": func(m Mode) bool { return m.Session }, ".compress session": func(m Mode) bool { return m.Session },
		".info session": func(m Mode) bool { return m.Session || m.EmptySession }, ".edit session": func(m Mode) bool { return m.Session || m.EmptySession },
		".save session": func(m Mode) bool { return m.Session || m.EmptySession }, ".exit session": func(m Mode) bool { return m.Session || m.EmptySession },
		".agent":   func(m Mode) bool { return m == Mode{} },
		".starter": func(m Mode) bool { return m.Agent }, ".edit agent-config": func(m Mode) bool { return m.Agent },
		".info agent": func(m Mode) bool { return m.Agent }, ".exit agent": func(m Mode) bool { return m.Agent },
		".rag":           func(m Mode) bool { return !m.Agent },
		".edit rag-docs": func(m Mode) bool { return m.Knowledge && !m.Agent }, ".exit rag": func(m Mode) bool { return m.Knowledge && !m.Agent },
		".rebuild rag": func(m Mode) bool { return m.Knowledge }, ".sources rag": func(m Mode) bool { return m.Knowledge }, ".info rag": func(m Mode) bool { return m.Knowledge },
	}
	for _, name := range []string{
		".help", ".info", ".authenticate", ".model", ".clear todo", ".macro", ".file", ".continue", ".regenerate", ".copy", ".set", ".delete", ".vault", ".install", ".exit",
	} {
		want[name] = func(Mode) bool { return true }
	}
	c, _ := newConsole(t, nil)
	for name, offered := range want {
		i := slices.IndexFunc(c.Commands(), func(row Command) bool { return row.Name == name })
		if i < 0 {
			t.Errorf("there is no command %s", name)
			continue
		}
		for _, m := range all {
			if got := c.Commands()[i].Offered(m); got != offered(m) {
				t.Errorf("%s in %+v: offered %t", name, m, got)
			}
		}
	}
}

func TestChat(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "answer.txt")
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, []byte("buy milk"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := talk(t, nil, []string{no, yes}, "edited",
		step{line: ".copy", err: "there is no answer yet"},
		step{line: ".continue", err: "there is no answer to continue"},
		step{line: ".regenerate", err: "there is no question to answer again"},
		step{line: ".edit last", err: "there is no question to edit"},
		step{line: ".undo", err: "there is no question to take back"},
		step{line: "hello", want: "hello"},
		step{line: "::: two\nlines :::", want: "two\nlines "},
		step{line: ".regenerate", want: "two\nlines "},
		step{line: ".retry", want: "two\nlines "},
		step{line: ".continue", want: ".*"},
		step{line: ".edit last", want: "edited"},
		step{line: ".file " + notes, want: "buy milk"},
		step{line: ".file " + notes + " -- what to do?", want: "what to do?\n\n============ FILE: .*buy milk"},
		step{line: "what is in @" + notes + "?", want: "Attached: .*notes.txt|what is in @.*buy milk"},
		step{line: ".file %% -- again", want: "again\n\nwhat is in .*"},
		step{line: ".file nowhere.txt", err: ".*nowhere.txt.*"},
		step{line: ".file -- only text", err: "there is nothing to attach; .*"},
		step{line: "```sh\nls\n```\nand\n```\npwd\n```", want: "```sh.*"},
		step{line: ".save code 3 x", err: "the last answer has 2 blocks of code, so there is no block 3"},
		step{line: ".save code x", err: `"x" is not the number of a block of code.*`},
		step{line: ".save code 1", err: "the file is missing.*"},
		step{line: ".save code 1 " + file, want: "✓ Saved in .*answer.txt"},
		step{line: ".save last " + file}, // no
		step{line: ".save last " + file, want: "✓ Saved in .*answer.txt"},
		step{line: ".copy", err: "there is no clipboard here"},
	)
	if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), "```sh") {
		t.Errorf("%q, %v", text, err)
	}
	var copied string
	c.Clipboard = func(text string) error { copied = text; return nil }
	if err := c.Do(t.Context(), ".copy 2"); err != nil || copied != "pwd" {
		t.Errorf("copied %q, %v", copied, err)
	}
	if err := c.Do(t.Context(), ".copy 0"); err == nil {
		t.Error("block 0 was copied")
	}
}

const coder = "---\ntemperature: 0.5\n---\nwrite code\n"

func TestRoles(t *testing.T) {
	c, _ := talk(t, map[string]string{"roles/coder.md": coder}, []string{no, yes, "mine"}, "be new",
		step{line: ".info role", err: "there is no role; enter one: .role NAME"},
		step{line: ".edit role", err: "there is no role; .*"},
		step{line: ".save role", err: "there is no role to save.*"},
		step{line: ".exit role"},
		step{line: ".role coder say it", want: "say it"},
		step{line: ".info role", err: "there is no role; .*"},
		step{line: ".role coder"},
		step{line: ".info role", want: "---\ntemperature: 0.5\n---\n\nwrite code"},
		step{line: ".save role copied", want: "✓ Role saved in .*copied.md"},
		step{line: ".edit role"},
		step{line: ".info role", want: "be new"},
		step{line: ".exit role"},
		step{line: ".role nobody", err: ".*nobody.*"}, // no
		step{line: ".role fresh"},                     // yes
		step{line: ".info role", want: "be new"},
		step{line: ".prompt talk like a pirate"},
		step{line: ".edit role", err: "a temporary role has no file.*"},
		step{line: ".save role", want: "✓ Role saved in .*mine.md"},
		step{line: ".session"},
		step{line: "ahoy", want: "ahoy"},
		step{line: ".role coder", err: "session temp has messages.*"},
		step{line: ".role unknown", err: "session temp has messages.*"},
		step{line: ".prompt x", err: "session temp has messages.*"},
		step{line: ".exit role", err: "session temp has messages.*"},
		step{line: ".edit role", err: "session temp has messages.*"},
	)
	c.Edit = nil
	if err := c.Do(t.Context(), ".edit config"); err == nil || !strings.Contains(err.Error(), "an editor cannot be opened here") {
		t.Error(err)
	}
	c.InMacro = true
	if err := c.Do(t.Context(), ".edit config"); err == nil || !strings.Contains(err.Error(), "a macro cannot open an editor") {
		t.Error(err)
	}
	if err := c.Do(t.Context(), ".update"); err == nil || !strings.Contains(err.Error(), "a macro cannot update the program") {
		t.Error(err)
	}
	c.InMacro = false
	if err := c.Do(t.Context(), ".update 0.2.0"); err == nil || !strings.Contains(err.Error(), "does not know where its releases are") {
		t.Error(err)
	}
}

func TestSessions(t *testing.T) {
	c, asker := talk(t, nil, []string{yes}, "+temperature: 0.25\n",
		step{line: ".info session", err: "there is no session; .*"},
		step{line: ".edit session", err: "there is no session; .*"},
		step{line: ".empty session", err: "there is no session; .*"},
		step{line: ".compress session", err: "there is no session; .*"},
		step{line: ".save session", err: "there is no session; .*"},
		step{line: ".exit session"},
		step{line: ".fork", err: "there is no session; .*"},
		step{line: "before", want: "before"},
		step{line: ".new", want: "✓ A new conversation begins"},
		step{line: "before", want: "before"},
		step{line: ".save session", err: "this conversation has no name yet; .*"},
		step{line: ".session trip", want: "✓ Continuing in session trip"}, // yes, with what was said
		step{line: ".info session", want: "path .*model .*>> before\n.*before"},
		step{line: ".session other", err: "the conversation is already in session trip; leave it first: .exit session"},
		step{line: "and now", want: "and now"},
		step{line: ".undo", want: "✓ Taken back: and now"},
		step{line: ".fork copy", want: "✓ Continuing in session copy"},
		step{line: ".save session copied", want: "✓ Session saved as copied"},
		step{line: ".edit session"},
		step{line: ".info", want: "model .*temperature                   0.25\n.*"},
		step{line: ".empty session", want: "✓ The session has no messages any more"},
		step{line: ".compress session", err: "session copied has no messages.*"},
		step{line: ".exit session"},
		step{line: ".session copied"},
		step{line: ".exit session"},
	)
	if n := len(asker.Asked()); n != 1 {
		t.Errorf("%d questions: %v", n, asker.Asked())
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

const guide = "name: guide\ndescription: Knows the way\nversion: 1.2\ninstructions: Guide through {{town}}.\nvariables:\n  - {name: town, description: Where}\nconversation_starters: [Where to eat?, What to see?]\n"

func TestAgents(t *testing.T) {
	files := map[string]string{"agents/guide/config.yaml": guide, "agents/flow/graph.yaml": "name: flow\nversion: \"1.0\"\nstart: done\nnodes:\n  done: {type: end, output: \"got {{initial_prompt}}\"}\n"}
	talk(t, files, []string{"Graz", no, no}, "# changed\n"+guide,
		step{line: ".starter", err: "there is no agent; .*"},
		step{line: ".info agent", err: "there is no agent; .*"},
		step{line: ".exit agent", err: "there is no agent; .*"},
		step{line: ".edit agent-config", err: "there is no agent; .*"},
		step{line: ".clear todo", err: "there is no todo list: auto_continue is off; .*"},
		step{line: ".agent nobody", err: ".*nobody.*"},
		step{line: ".agent guide s x", err: `"x" is not KEY=VALUE.*`},
		step{line: ".agent guide town=a town=b", err: `"town=b" sets town twice.*`},
		step{line: ".agent guide tour \"town=Bad Aussee\""},
		step{line: ".agent guide", err: "the conversation is already with agent guide; .*"},
		step{line: ".info agent", want: "name: guide\n.*town: Bad Aussee\n.*"},
		step{line: ".role coder", err: ".*agent guide.*"},
		step{line: ".rag notes", err: "agent guide answers from its own documents.*"},
		step{line: ".starter", want: "# guide 1.2\n\nKnows the way\n\n## Conversation starters\n\n1. Where to eat?\n2. What to see?"},
		step{line: ".starter 3", err: `"3" is not the number of a conversation starter: agent guide has 2; .*`},
		step{line: ".starter x", err: `"x" is not the number.*`},
		step{line: ".starter 2", want: ">> What to see?|What to see?"},
		step{line: ".edit agent-config", want: "The agent has its new definition when it is entered again: .exit agent, .agent guide"},
		step{line: ".exit agent"},
		step{line: ".exit agent", err: "there is no agent; .*"},
		step{line: ".agent guide"}, // Graz
		step{line: "hello", want: "hello"},
		step{line: ".exit agent"},
		step{line: ".agent flow session", err: "agent flow is a graph, which has no sessions; .*"},
		step{line: ".agent flow"},
		step{line: ".session x", err: "agent flow is a graph, which has no sessions; .*loki --runs -a flow.*"},
		step{line: ".export", err: "agent flow is a graph, which has no sessions; .*loki --runs -a flow.*"},
		step{line: ".info session", err: "agent flow is a graph, which has no sessions; .*"},
		step{line: ".set temperature 0.5", err: "agent flow is a graph: its nodes set temperature; .*exit agent"},
		step{line: ".set max_output_tokens 4", err: "agent flow is a graph: its nodes set max_output_tokens; .*"},
		step{line: ".set stream false"},
		step{line: "a question", want: "got a question"},
		step{line: ".undo", err: "agent flow is a graph, which has no sessions; .*"},
		step{line: ".info agent", want: "name: flow\n.*"},
		step{line: ".exit agent"},
	)
}

func TestKnowledgeBases(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"boats.md": "Boats float on water.", "cars.md": "Cars have four wheels."} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	boats, cars := filepath.Join(dir, "boats.md"), filepath.Join(dir, "cars.md")
	files := map[string]string{"config.yaml": "rag_embedding_model: builtin:hash\n"}
	c, asker := talk(t, files, []string{boats, "  ;" + cars, filepath.Join(dir, "nothing.md")}, boats+"\n"+cars+"\n",
		step{line: ".info rag", err: "there is no knowledge base; .*"},
		step{line: ".rebuild rag", err: "there is no knowledge base; .*"},
		step{line: ".edit rag-docs", err: "there is no knowledge base; .*"},
		step{line: ".sources rag", err: "nothing was searched for an answer yet"},
		step{line: ".exit rag"},
		step{line: ".rag a/b", err: `"a/b" cannot be the name of a knowledge base.*`},
		step{line: ".rag notes", want: "✓ Knowledge base notes: 1 document, 1 chunk"},
		step{line: "what floats?", want: ".*Boats float on water.*"},
		step{line: ".sources rag", want: ".*boats.md.*"},
		step{line: ".info rag", want: "path: .*document_paths:\n  - .*boats.md.*"},
		step{line: ".edit rag-docs", want: "✓ Knowledge base notes: 2 documents, 2 chunks"},
		step{line: ".edit rag-docs", err: "nothing was changed"},
		step{line: ".rebuild rag", want: "✓ Knowledge base notes: 2 documents, 2 chunks"},
		step{line: ".exit rag"},
		step{line: ".rag notes"},
		step{line: ".rag", want: "✓ Knowledge base .temp: 1 document, 1 chunk"},
		step{line: "what has four wheels?", want: ".*Cars have.*"},
		step{line: ".rag", err: ".*nothing.md.*"}, // and the other one stays in force
		step{line: ".info rag", want: "path: .*cars.md.*"},
	)
	c.Interactive = false
	if err := c.Do(t.Context(), ".rag nothing"); fault.CodeOf(err) != fault.NotFound {
		t.Error(err)
	}
	if n := len(asker.Asked()); n != 3 {
		t.Errorf("%d questions", n)
	}
	// A temporary knowledge base is none of those of the user, and ends with the program.
	file, err := c.App.Knowledge().Library().File(c.conv.State().Knowledge)
	if err != nil || filepath.Dir(file) == c.App.Paths.RAGsDir {
		t.Errorf("%s, %v", file, err)
	}
	if names, err := c.App.Knowledge().Names(t.Context()); err != nil || !slices.Equal(names, []string{"notes"}) {
		t.Errorf("%q, %v", names, err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if err := c.App.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the temporary knowledge base is still there")
	}
}

func TestSettings(t *testing.T) {
	talk(t, nil, []string{"builtin:extract .*"}, "",
		step{line: ".set temperature 0.5"},
		step{line: ".info", want: ".*temperature                   0.5\n.*"},
		step{line: ".set temperature null"},
		step{line: ".set temperature hot", err: `temperature: want a number from 0 to 2, or null, found "hot".*`},
		step{line: ".set temperature 5", err: `temperature: want a number from 0 to 2, or null, found "5".*`},
		step{line: ".set top_p -0.1", err: `top_p: want a number from 0 to 1, or null, found "-0.1".*`},
		step{line: ".set nothing true", err: `there is no setting "nothing"; .*`},
		step{line: ".set dry_run true"},
		step{line: ".info", want: ".*dry_run                       true\n.*"},
		step{line: ".set dry_run false"},
		step{line: ".model nothing", err: ".*nothing.*"},
		step{line: ".model builtin:extract"},
		step{line: ".set model builtin:echo"},
		step{line: ".models xyzzy", err: `no model is called like "xyzzy"`},
		step{line: ".models btext", want: "✓ builtin:extract"},
		step{line: ".authenticate", err: `.*builtin.*`},
	)
}

func TestEditConfig(t *testing.T) {
	c, _ := talk(t, nil, nil, "model: builtin:extract\n",
		step{line: ".edit config", want: "Restart the program to use what you changed in .*config.yaml"},
		step{line: ".edit mcp-config", want: "Restart the program to use what you changed in .*mcp.json"},
	)
	if text, err := os.ReadFile(c.App.Paths.ConfigFile); err != nil || string(text) != "model: builtin:extract\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestHelpFits: no line of .help is longer than a terminal of 80 columns is wide.
func TestHelpFits(t *testing.T) {
	for _, row := range table() {
		if len(row.Help) > 51 {
			t.Errorf("%s: the help has %d characters, and 51 fit: %s", row.Name, len(row.Help), row.Help)
		}
	}
}

func TestDelete(t *testing.T) {
	files := map[string]string{"roles/a.md": "a", "roles/b.md": "b", "macros/m.yaml": "steps: [hi]\n", "agents/x/config.yaml": "name: x\n"}
	both := ask.JoinAnswers([]string{"a", "b"})
	c, asker := talk(t, files, []string{both, no, ask.JoinAnswers(nil), both, yes, `["m"]`, yes, `["x"]`, yes, `["s"]`, yes, `["s"]`, yes}, "",
		step{line: ".delete everything", err: `"everything" cannot be deleted; .delete role, .*`},
		step{line: ".delete rag", err: "there is no rag to delete"},
		step{line: ".delete role"}, // no
		step{line: ".delete role", err: "no role was chosen, so nothing is deleted"},
		step{line: ".delete role", want: "✓ Deleted role a|✓ Deleted role b"},
		step{line: ".delete role", err: "there is no role to delete"},
		step{line: ".delete macro", want: "✓ Deleted macro m"},
		step{line: ".delete agent-data", want: "✓ Deleted agent-data x"},
		step{line: ".set save_session true"},
		step{line: ".session s"},
		step{line: "hi", want: "hi"},
		step{line: ".save session", want: "✓ .*"},
		step{line: ".delete session", err: "session s is in use.*"},
		step{line: ".exit session"},
	)
	if options := asker.Asked()[0].Options; !slices.Equal(options, []string{"a", "b"}) {
		t.Errorf("offered %q", options)
	}
	if _, err := os.Stat(filepath.Join(c.App.Paths.AgentsDir, "x")); err == nil {
		t.Error("the agent is still there")
	}
}

// TestDeleteAgent: the question says what goes, and the agent in force stays.
func TestDeleteAgent(t *testing.T) {
	files := map[string]string{
		"agents/guide/config.yaml": guide, "agents/guide/precious.txt": "x", "agents/guide/sessions/a/b.yaml": "x", "agents/guide/sessions/c.yaml": "x",
		"keep.txt": "x", "roles/a.md": "a",
	}
	c, asker := talk(t, files, []string{`["guide"]`, `["guide"]`, no, `["."]`, yes, `["../agents/guide"]`, yes, `["a"]`}, "",
		step{line: ".agent guide town=Graz"},
		step{line: ".delete agent-data", err: "agent guide is in use, so nothing is deleted; .*.exit agent"},
		step{line: ".exit agent"},
		step{line: ".delete agent-data"}, // no
		step{line: ".delete agent-data", err: `.*"." is not the name of an agent`},
		step{line: ".delete agent-data", err: `.*"../agents/guide" is not a.*`},
		step{line: ".role a"},
		step{line: ".delete role", err: "role a is in use.*"},
	)
	dir := filepath.Join(c.App.Paths.AgentsDir, "guide")
	want := "Delete guide? All of this goes:\n" + dir + ": config.yaml, precious.txt, sessions (2 files)"
	if got := asker.Asked()[2].Text; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
	for _, file := range []string{filepath.Join(dir, "precious.txt"), filepath.Join(c.App.Paths.ConfigDir, "keep.txt")} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}

func TestVault(t *testing.T) {
	talk(t, nil, []string{"s3cret", "s3cret", "other", "other"}, "",
		step{line: ".vault list", want: "The vault is empty."},
		step{line: ".vault get KEY", err: ".*KEY.*"},
		step{line: ".vault add KEY", want: "✓ Secret KEY is in the vault. .*"},
		step{line: ".vault add KEY", err: ".*KEY.*already.*"},
		step{line: ".vault get KEY", want: "secret: s3cret"},
		step{line: ".vault update KEY", want: "✓ .*"},
		step{line: ".vault get KEY", want: "secret: other"},
		step{line: ".vault list", want: "KEY"},
		step{line: ".vault delete KEY", want: "✓ Secret KEY is deleted"},
		step{line: ".vault delete KEY", err: ".*KEY.*"},
		step{line: ".vault burn KEY", err: ".vault burn is not a command; .*"},
	)
}

// TestEditedSessionKeepsItsName: a file whose name the user deletes is still that of the session.
func TestEditedSessionKeepsItsName(t *testing.T) {
	c, _ := talk(t, nil, []string{yes}, "model: builtin:echo\n",
		step{line: ".session trip"},
		step{line: "hello", want: "hello"},
		step{line: ".edit session"},
		step{line: ".exit session"},
	)
	if err := c.Do(t.Context(), ".session trip"); err != nil {
		t.Fatal(err)
	}
	if messages := c.conv.Session().Messages(); len(messages) != 2 {
		t.Errorf("session trip has %v", messages)
	}
}

func TestInstallCategory(t *testing.T) {
	talk(t, nil, []string{no, yes}, "",
		step{line: ".install everything", err: `"everything" is not a part of the program.*`},
		step{line: ".install macros", want: "Nothing was changed."},
		step{line: ".install macros", want: "✓ Installed macros in .*: 1 file"},
	)
}

// TestOddArguments: no command ends the program, whatever stands behind its name.
func TestOddArguments(t *testing.T) {
	t.Chdir(t.TempDir()) // for what is written
	odd := []string{"", "--", "-- ", "-- x", "''", `"`, "' --", "=", "x =", `\`, "\x00", strings.Repeat("x", 10_000), strings.Repeat("'x y' ", 2_000)}
	for _, interactive := range []bool{true, false} {
		c, _ := newConsole(t, map[string]string{"config.yaml": "release_feed: http://127.0.0.1:1\n", "agents/guide/config.yaml": guide})
		c.Interactive = interactive
		for _, row := range c.Commands() {
			for _, args := range odd {
				_ = c.Do(t.Context(), row.Name+" "+args) // most are errors
			}
		}
	}
}

func TestKeyValues(t *testing.T) {
	given, err := keyValues([]string{"a=b=c", `d="two words"`, "e="}, ".x")
	if want := map[string]string{"a": "b=c", "d": "two words", "e": ""}; err != nil || !maps.Equal(given, want) {
		t.Errorf("%q, %v", given, err)
	}
	for _, list := range [][]string{{"a"}, {"=x"}, {"a=1", "a=2"}, {""}} {
		if _, err := keyValues(list, ".x"); fault.CodeOf(err) != fault.Usage || !strings.HasPrefix(fault.HintOf(err), ".x; ") {
			t.Errorf("%q: %v", list, err)
		}
	}
}

// TestDeleteUnnamed: sessions without a name are offered and asked about with their first words.
func TestDeleteUnnamed(t *testing.T) {
	c, asker := talk(t, nil, []string{`[]`}, "",
		step{line: "which birches grow, here?", want: ".*"},
		step{line: ".new", want: ".*"},
		step{line: ".delete session", err: "no session was chosen.*"},
		step{line: ".delete", want: ".*(which birches.*"},
	)
	options := asker.Asked()[0].Options
	if len(options) != 1 || !strings.HasSuffix(options[0], " (which birches grow, here?)") {
		t.Fatalf("offered %q", options)
	}
	again := asktest.NewScripted(ask.JoinAnswers(options), yes)
	c.Asker = again
	if err := c.Do(t.Context(), ".delete session"); err != nil {
		t.Fatal(err)
	}
	if q := again.Asked()[1].Text; q != "Delete "+options[0]+"?" {
		t.Errorf("the question is %q", q)
	}
	if err := c.Do(t.Context(), ".delete session"); err == nil {
		t.Error("the session is still there")
	}
}

// TestNarrowHelp: the commands are listed in as many columns as the terminal has.
func TestNarrowHelp(t *testing.T) {
	c, out := newConsole(t, nil)
	c.Interactive, c.Columns = true, func() int { return 50 }
	if err := c.Do(t.Context(), ".help"); err != nil {
		t.Fatal(err)
	}
	list, _, _ := strings.Cut(strings.Join(*out, "\n"), moreHelp)
	for line := range strings.Lines(list) {
		if len(line) > 51 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if !strings.Contains(list, ".help") {
		t.Error("no commands")
	}
}

// TestTopKInForce: .set shows how many passages a question finds where it was not set.
func TestTopKInForce(t *testing.T) {
	talk(t, nil, nil, "",
		step{line: ".set rag_top_k", want: ".*now 5;.*"},
		step{line: ".set rag_top_k 7"},
		step{line: ".set rag_top_k", want: ".*now 7;.*"},
	)
}

// TestMisspelledNames: names that nearly exist, and a text that is not separated from files.
func TestMisspelledNames(t *testing.T) {
	talk(t, map[string]string{"config.yaml": "", "rags/house.db": ""}, nil, "",
		step{line: ".file missing.txt what is this", err: ".*no file or directory at what; a text comes after --: .file missing.txt -- what is this"},
		step{line: ".mod", err: ".mod is not a command; did you mean .model?.*"},
		step{line: ".modle", err: ".modle is not a command; did you mean .model?.*"},
		step{line: ".session garden"},
		step{line: "hello", want: ".*"},
		step{line: ".save session", want: ".*"},
		step{line: ".exit session"},
		step{line: ".session gardne", want: "session gardne is new; did you mean garden?"},
	)
}

// TestFileOpenly: .file refuses what an ignore file hides, unless its first word says that the user wants to send it.
func TestFileOpenly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.hidden")
	if err := os.WriteFile(file, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := talk(t, map[string]string{"ignore": "*.hidden\n"}, nil, "",
		step{line: ".file " + file, err: ".*hides.*in a chat: .file --no-ignore FILE"},
		step{line: ".file --no-ignore " + file + " -- what is it?", want: "what is it?\n\n============ FILE: .*token"},
		step{line: ".file --no-ignore", err: "there is nothing to attach; .*"},
	)
	if got := c.Complete(t.Context(), ".file --n"); len(got.Candidates) != 1 || got.Candidates[0].Value != "--no-ignore" {
		t.Errorf("%+v", got)
	}
}
