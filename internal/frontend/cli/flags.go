package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loki/internal/agent/bundle/remote"
	"loki/internal/agent/validate/draft/scaffold"
	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/conversation/session"
	commands "loki/internal/frontend/command"
	"loki/internal/frontend/command/completion"
	"loki/internal/frontend/command/export"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/workflow/graph/draw"
)

// sampling is how models choose their words, and how many.
type sampling struct {
	chat.Sampling
	maxOutput    int  // tokens; 0 for the model's own limit
	uninstructed bool // models do not get what the workspace tells them
	unignored    bool // the user attaches what ignore files hide, too

	memory       string   // what --memory does
	skills       []string // names of the ones that are loaded with the question
	unremembered bool     // models neither get nor write what is remembered

	mode       chat.Mode // "" leaves it to the role, the agent or the session
	acceptPlan bool
}

// many is which runs a command is about.
type many struct {
	where     string // a condition
	resumeAll string // the status of runs to resume, or allUnended; "" for one run
	cancel    string // a run, or cancelMany
}

// pruning is which runs --runs-prune forgets.
type pruning struct {
	many
	prune bool
	older string
	keep  int
}

// unattended is what happens with runs that their user does not watch.
type unattended struct {
	pruning
	scheduling
}

// options is what the command line asks for.
type options struct {
	unattended
	value     string // of the flag of the action
	model     string
	agent     string
	variables [][2]string // --agent-variable NAME VALUE, in order
	files     []string
	prompt    string
	role      string
	session   string // with hasSession; "" is a temporary one
	sampling  sampling
	schema    string
	mapFile   string
	mapOut    string
	jobs      int
	execute   bool
	code      bool
	noStream  bool
	yes       bool
	dryRun    bool

	hasSession   bool
	emptySession bool
	saveSession  bool
	goOn         bool // with the last conversation of the directory

	renameSession [][2]string // OLD NEW
	to            string      // the file of --export

	info     bool
	record   string
	replay   string // a file, or the id of a run
	test     string
	rewrite  bool   // --update, with --test
	update   string // a version, or anyVersion
	junit    string
	validate string
	strict   bool
	watch    bool // with --validate
	graph    string
	format   string
	depth    int
	output   string
	quiet    bool
	verbose  int

	plan   string // the wish of --plan
	rounds int    // of --plan
	save   string // name of a new agent, with --plan
	kind   string // of the agent of --init-agent

	listModels bool

	knowledge knowledgeOptions
	budget    string
	bundles   bundles

	callTool    [][2]string // NAME JSON
	triggerTest [][2]string // NAME FILE

	plainLogs bool
	ask       bool   // the default model, with --doctor
	reset     string // the client whose limits --limits forgets
	version   bool

	worktree string   // its name, or newWorktree; "" for none
	resume   string   // the id of a run, or resumeNewest
	answer   []string // TEXT, or QUESTION=TEXT
	wait     bool
	signals  [][2]string // run and NAME=JSON
	answers  string      // path of a file
	force    bool
	here     bool

	state bool
	stepN string      // a number, or oneStep; see state and steps
	diff  [][2]string // ID@STEP ID@STEP
	set   []string

	breaks  []string // NODE or NODE:after
	watched []string // --watch: keys, or watchFiles

	noCompensate bool

	mostRuns int // that --runs lists; 0 for all

	server string // URL
	scopes string // of a new key of the server, with commas

	text    []string // the free text, by words
	flags   *pflag.FlagSet
	action  action // what the flags ask for
	helpErr error  // of --help
}

// Output formats.
const (
	outputText   = "text"
	outputJSON   = "json"
	outputNDJSON = "ndjson"
	outputSARIF  = "sarif"  // with --validate
	outputGitHub = "github" // with --validate
)

// anyClient is the value of --authenticate without a client.
const anyClient = "(the only one)"

// configuredAddress is the value of --serve and --healthcheck without an address.
const configuredAddress = "(configured)"

// anyVersion is the value of --update without a version.
const anyVersion = "(the newest)"

// watchFiles is the value of --watch without a key.
const watchFiles = "(files)"

// oneStep is the value of --step without a number.
const oneStep = "one"

// resumeNewest is the value of --resume and --attach without an id.
const resumeNewest = "newest"

const tagline = "Run prompts and reliable workflows with language models"

// newCommand returns the command that fills o and then calls run.
func newCommand(o *options, run func(*cobra.Command) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "loki [OPTIONS] [TEXT]...",
		Short:                 tagline,
		Args:                  cobra.ArbitraryArgs,
		SilenceErrors:         true,
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.version {
				// Not by cobra's template: templates keep the linker from dropping
				// methods that nothing calls, which is a third of the binary.
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "loki "+app.Version)
				return err
			}
			o.text = args
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return run(cmd)
		},
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetFlagErrorFunc(flagError)
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { o.helpErr = help(cmd) })
	cmd.Flags().SortFlags = false
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "system" { // as other programs call it
			name = "prompt"
		}
		return pflag.NormalizedName(name)
	})
	for _, f := range o.all() {
		f.sets(cmd.Flags(), f)
		cmd.Flags().Lookup(f.name).Hidden = f.form != ""
	}
	return cmd
}

// flagSpec is one flag: how it is spelled, what it sets and what goes with it. It is in one section
// of the help. What it makes the program do, if anything, is in the table of actions.
type flagSpec struct {
	name, short string // short is "" for none
	form        string // for one that is shown as another flag: that flag and the word that chooses this one
	sets        setter
	usage       string // its value is in backquotes, unless the value names its kind

	bare string   // the value if the flag is given without one; "" means that it needs one
	with []string // flags of which it needs one
	not  []string // flags that contradict it
}

// setter declares a flag that sets a field of the options.
type setter func(set *pflag.FlagSet, f flagSpec)

// on is a flag without a value.
func on(p *bool) setter {
	return func(set *pflag.FlagSet, f flagSpec) { set.BoolVarP(p, f.name, f.short, false, f.usage) }
}

// counter is a flag without a value that counts how often it is given.
func counter(p *int) setter {
	return func(set *pflag.FlagSet, f flagSpec) { set.CountVarP(p, f.name, f.short, f.usage) }
}

// number is a flag with a whole number.
func number(p *int, otherwise int) setter {
	return func(set *pflag.FlagSet, f flagSpec) { set.IntVarP(p, f.name, f.short, otherwise, f.usage) }
}

// countTo is a flag with a whole number from 1 to most.
func countTo(p *int, most int) setter {
	return single(once{value: new(string), kind: "N", check: func(v string) (err error) {
		if *p, err = strconv.Atoi(v); err != nil || *p < 1 || *p > most {
			return fmt.Errorf("want a number from 1 to %d", most)
		}
		return nil
	}})
}

// list is a flag that may be repeated.
func list(p *[]string) setter {
	return func(set *pflag.FlagSet, f flagSpec) {
		set.StringArrayVarP(p, f.name, f.short, nil, f.usage)
		set.Lookup(f.name).NoOptDefVal = f.bare
	}
}

// two is a flag with two values, which kind names. It may be repeated.
func two(p *[][2]string, kind string) setter {
	return func(set *pflag.FlagSet, f flagSpec) { set.VarP(pairs{p, kind}, f.name, f.short, f.usage) }
}

// anyText is a flag with a value that may be empty.
func anyText(p *string, kind string) setter { return single(once{value: p, kind: kind}) }

// word is a flag with a value that is not empty.
func word(p *string, kind string) setter {
	return single(once{value: p, kind: kind, check: notEmpty})
}

// actionValue is a flag of an action, which reads the value as that of the options.
func actionValue(kind string) setter { return word(new(string), kind) }

// decimal is a flag with the number of a setting that is called key.
func decimal(p **float64, key string) setter {
	return func(set *pflag.FlagSet, f flagSpec) {
		set.VarP(&number64{value: p, key: key}, f.name, f.short, f.usage)
	}
}

// choice is a flag with one of several values.
func choice(p *string, kind string, values []string) setter {
	return single(once{value: p, kind: kind, values: values})
}

// shellName is a flag with a shell, whose values leave out other spellings.
func shellName() setter {
	return single(once{value: new(string), kind: "SHELL", values: completion.Shells(), check: func(name string) error {
		if _, err := completion.ParseShell(name); err != nil {
			return oneOf(completion.Shells()...)(name)
		}
		return nil
	}})
}

// single is a flag that may be given once.
func single(value once) setter {
	return func(set *pflag.FlagSet, f flagSpec) {
		set.VarP(&value, f.name, f.short, f.usage)
		set.Lookup(f.name).NoOptDefVal = f.bare
	}
}

// section is a group of flags that serve the same purpose.
type section struct {
	name   string     // by which --help shows the whole section
	title  string     // above its flags
	common []flagSpec // of the short help
	more   []flagSpec // the others
}

// flags returns all flags of the section, the common ones first.
func (s section) flags() []flagSpec { return slices.Concat(s.common, s.more) }

// all returns every flag.
func (o *options) all() []flagSpec {
	all := o.forms()
	for _, s := range o.sections() {
		all = append(all, s.flags()...)
	}
	return all
}

// notBuilt are the flags that show a knowledge base as it is.
var notBuilt = []string{"rag-query", "rag-eval", "info", "list-rags"}

// sections returns the flags of the command, which set the fields of o.
func (o *options) sections() []section {
	return []section{
		{
			name: "ask", title: "Ask a model",
			common: []flagSpec{
				{name: "model", short: "m", sets: word(&o.model, "MODEL"), usage: "model to use, as client:model"},
				{name: "role", short: "r", sets: word(&o.role, "ROLE"), usage: "answer in a role"},
				{name: "file", short: "f", sets: list(&o.files), usage: "attach the file at `PATH`, or the text files of a directory; may be repeated"},
				{name: "execute", short: "e", sets: on(&o.execute), usage: "write a command for the shell, and decide what to do with it"},
				{name: "code", short: "c", sets: on(&o.code), usage: "write code and nothing else"},
				{name: "schema", sets: word(&o.schema, "FILE"), usage: "answer in JSON that satisfies the JSON Schema in this file", not: []string{"code", "execute"}},
			},
			more: []flagSpec{
				{name: "prompt", sets: word(&o.prompt, "TEXT"), usage: "answer under these instructions; --system means the same"},
				{name: "macro", sets: actionValue("MACRO"), usage: "run a macro; the words after the options are its arguments"},
				{name: "effort", sets: choice((*string)(&o.sampling.Effort), "EFFORT", efforts()), usage: "how much to reason first: " + provider.EffortNames()},
				{name: "temperature", sets: decimal(&o.sampling.Temperature, "temperature"), usage: "how random the answer is: a number from 0 to 2"},
				{name: "top-p", sets: decimal(&o.sampling.TopP, "top_p"), usage: "sample only from the most likely tokens, which have this share of the probability: a number from 0 to 1"},
				{name: "max-output", sets: number(&o.sampling.maxOutput, 0), usage: "stop each answer after `N` tokens"},
				{name: "map", sets: word(&o.mapFile, "FILE"), usage: "ask once for each line of a JSON Lines file; the text is the template for its objects"},
				{name: "map-out", sets: word(&o.mapOut, "FILE"), usage: "with --map: where the answers go, by default beside the file", with: []string{"map"}},
				{name: "jobs", sets: number(&o.jobs, defaultJobs), usage: "with --map, --test, --run-due or --resume --all: process `N` lines, cases or runs at a time", with: []string{"map", "test", "run-due", "all"}},
				{name: "no-instructions", sets: on(&o.sampling.uninstructed), usage: "do not send models the instructions in AGENTS.md and similar files"},
				{name: "skill", sets: list(&o.sampling.skills), usage: "load the skill called `NAME` with the question; may be repeated", not: []string{"execute", "code", "map"}},
				{name: "no-memory", sets: on(&o.sampling.unremembered), usage: "do not use facts from earlier conversations, and remember nothing"},
				{name: "mode", sets: choice((*string)(&o.sampling.mode), "MODE", chat.Modes()), usage: "what tools may change: ask (you are asked; the default), plan (nothing, until you accept a plan) or write (programs write in the workspace unasked)", not: []string{"execute", "code", "map", "server"}},
				{name: "accept-plan", sets: on(&o.sampling.acceptPlan), usage: "with --mode plan: accept the plan in advance", with: []string{"mode"}},
				{name: "no-stream", short: "S", sets: on(&o.noStream), usage: "ask for answers in one piece"},
				{name: "no-ignore", sets: on(&o.sampling.unignored), usage: "also attach files that ignore files such as .aiignore hide; tools still do not see them"},
				{name: "dry-run", sets: on(&o.dryRun), usage: "show what would be sent to models, and send nothing"},
			},
		},
		{
			name: "sessions", title: "Continue a conversation",
			common: []flagSpec{
				{name: "session", short: "s", sets: word(&o.session, "SESSION"), usage: "continue a session, or begin one; without a name a temporary one", bare: session.TempName},
				{name: "continue", short: "C", sets: on(&o.goOn), usage: "continue the last conversation of this directory; with -a, of that agent", not: []string{"session", "info"}},
			},
			more: []flagSpec{
				{name: "search", sets: actionValue("TEXT"), usage: "find words in all sessions and runs; \"a phrase\", -without"},
				{name: "empty-session", sets: on(&o.emptySession), usage: "forget the messages of the session first"},
				{name: "save-session", sets: on(&o.saveSession), usage: "save the session even if save_session is false"},
				{name: "export", sets: actionValue("SESSION"), usage: "write a session, or the run with this ID, as a document; with -a a session of an agent, with -v with the reasoning of the model"},
				{name: "to", sets: word(&o.to, "FILE"), usage: "with --export: write it to this file, which must not exist", with: []string{"export"}},
				{name: "memory", sets: choice(&o.sampling.memory, "VERB", commands.MemoryVerbs()), usage: "list, search, show, add, edit or forget what is remembered between conversations; accept or refuse what models propose; prune what has expired. With -a, also of an agent", bare: commands.MemoryVerbs()[0]},
				{name: "delete-session", sets: actionValue("SESSION"), usage: "delete a session; with -a one of an agent, with -y without asking"},
				{name: "rename-session", sets: two(&o.renameSession, "SESSION NAME"), usage: "give a session another name; with -a one of an agent"},
			},
		},
		{
			name: "agents", title: "Run agents, look at their runs and resume them",
			common: []flagSpec{
				{name: "agent", short: "a", sets: word(&o.agent, "AGENT"), usage: "run an agent: its name, or the path of its directory"},
				{name: "validate", sets: word(&o.validate, "AGENT"), usage: "check an agent, or the skills in a directory, and exit"},
				{name: "plan", sets: word(&o.plan, "TEXT"), usage: "let a model draft a graph agent from a description; review it before it runs or is saved; with -a, change that agent"},
				{name: "runs", sets: on(new(bool)), usage: "list the runs of agents; with -a of one agent"},
				{name: "attach", sets: actionValue("ID"), usage: "follow a run from its first event, and answer its questions: this one, or the newest of this directory; Ctrl-C leaves the run as it is", bare: resumeNewest},
				{name: "resume", sets: word(&o.resume, "ID"), usage: "resume a run that did not end: this one, or the newest of this directory", bare: resumeNewest},
			},
			more: []flagSpec{
				{name: "worktree", sets: word(&o.worktree, "NAME"), usage: "work in a copy of the repository with a branch of its own: a new one, or with --worktree=NAME the one of this name; at the end merge, apply, keep or discard the work", bare: newWorktree, not: []string{"execute", "code", "map", "fork", "plan", "macro", "server", "dry-run", "replay", "info"}},
				{name: "remove-worktree", sets: actionValue("NAME"), usage: "remove a worktree; work in it stays as its branch"},
				{name: "kill-job", sets: actionValue("ID"), usage: "end a job that outlived its conversation; --list jobs shows them"},
				{name: "agent-variable", sets: two(&o.variables, "NAME VALUE"), usage: "set a variable of the agent; may be repeated"},
				{name: "plan-rounds", sets: number(&o.rounds, defaultRounds), usage: "with --plan: let the model correct its graph up to `N` times", with: []string{"plan"}},
				{name: "save", sets: word(&o.save, "NAME"), usage: "with --plan: save the agent under this name; with -y without asking", with: []string{"plan"}, not: []string{"agent"}},
				{name: "trust", sets: actionValue("DIR"), usage: "look at what the agent in a directory may do, and trust it as it is now; with -y without asking"},
				{name: "untrust", sets: actionValue("DIR"), usage: "do not trust a directory any more"},
				{name: "strict", sets: on(&o.strict), usage: "with --validate: unknown keys and warnings are errors; with --doctor: warnings are failures", with: []string{"validate", "doctor"}},
				{name: "record", sets: word(&o.record, "FILE"), usage: "write what the run exchanges with models, tools and you to a cassette", not: []string{"resume", "fork", "map", "dry-run"}},
				{name: "replay", sets: word(&o.replay, "FILE"), usage: "answer from a cassette, or the record of a run (`ID`), without network; other requests than the recorded ones fail", not: []string{"record", "resume", "fork", "map", "dry-run"}},
				{name: "test", sets: word(&o.test, "PATH"), usage: "run the cases in a file, below a directory or of an agent; more of them may follow"},
				{name: "junit", sets: word(&o.junit, "FILE"), usage: "with --test: write the results as JUnit XML, too", with: []string{"test"}},
				{name: "graph", sets: word(&o.graph, "AGENT"), usage: "draw the graph of an agent and exit"},
				{name: "format", sets: choice(&o.format, "FORMAT", slices.Concat(graphFormats, export.Formats())), usage: "with --graph: mermaid, dot, svg or text; with --export: md or html", with: []string{"graph", "export"}},
				{name: "depth", sets: number(&o.depth, draw.DefaultDepth), usage: "with --graph: open `N` levels of subgraphs; 0 draws each as one node", with: []string{"graph"}},
				{name: "init-agent", sets: actionValue("DIR"), usage: "write a new agent to begin with: a definition, a tool and a test case"},
				{name: "kind", sets: choice(&o.kind, "KIND", scaffold.Kinds()), usage: "with --init-agent: plain, a model with tools, or graph, a workflow", with: []string{"init-agent"}},
				{name: "print-schema", sets: choice(new(string), "WHAT", []string{"graph"}), usage: "print the JSON Schema of a file for editors: graph, the graph.yaml of an agent"},
				{name: "answer", sets: list(&o.answer), usage: "with --resume: the answer `TEXT` to the question that waits, or QUESTION=TEXT to one of several; may be repeated", with: []string{"resume"}, not: []string{"answers"}},
				{name: "answers", sets: word(&o.answers, "FILE"), usage: "with --resume or --agent: YAML or JSON with the answers, by question", with: []string{"resume", "agent"}},
				{name: "all", sets: choice(&o.resumeAll, "STATUS", []string{allUnended, "failed", "interrupted", "suspended", "canceled"}), usage: "with --resume: resume all runs that failed or were interrupted, or those with this status", bare: allUnended, with: []string{"resume"}, not: []string{"answer", "answers", "set", "wait", "break", "step"}},
				{name: "cancel", sets: word(&o.cancel, "ID"), usage: "cancel a run, and undo its finished steps as its graph says; with --where instead of ID those for which a condition holds", bare: cancelMany},
				{name: "where", sets: word(&o.where, "EXPR"), usage: "with --runs, --runs-prune, --resume --all and --cancel: only runs for which a condition holds, such as 'status == \"failed\" && age > 3600'", with: []string{"runs", "runs-prune", "all", "cancel"}},
				{name: "wait", sets: on(&o.wait), usage: "with --resume: wait until the provider accepts requests again, or for what the run itself waits for, then resume", with: []string{"resume"}},
				{name: "signal", sets: two(&o.signals, "ID NAME=JSON"), usage: "give a run a signal that one of its nodes waits for"},
				{name: "force", sets: on(&o.force), usage: "with --resume or --fork: resume even if the agent has changed; with --resume, even if a part of the run is not on record; with --update: even if a package manager has installed Loki", with: []string{"resume", "fork", "update"}},
				{name: "here", sets: on(&o.here), usage: "with --resume or --fork: resume in the current directory instead of the one in which the run was started", with: []string{"resume", "fork"}},
				{name: "run", sets: actionValue("ID"), usage: "show the path and the costs of a run"},
				{name: "limit", sets: number(&o.mostRuns, mostRuns), usage: "with --runs: list the `N` newest runs, 0 for all", with: []string{"runs"}},
				{name: "state", sets: on(&o.state), usage: "with --run: show the state", with: []string{"run"}},
				{name: "break", sets: list(&o.breaks), usage: "with --agent, --resume or --fork: suspend the run of a graph before this `NODE` runs, or with NODE:after once it has run; may be repeated", with: []string{"agent", "resume", "fork"}},
				{name: "step", sets: single(once{value: &o.stepN, kind: wholeNumber, check: whole(oneStep)}), usage: "with --agent, --resume or --fork: suspend the run of a graph after one super-step, or N; with --state: after super-step N instead of the last", bare: oneStep, with: []string{"agent", "resume", "fork", "state"}},
				{name: "no-compensate", sets: on(&o.noCompensate), usage: "with --agent, --resume or --fork: do not undo finished steps if the run of a graph fails or is canceled, so that it can be resumed", with: []string{"agent", "resume", "fork"}},
				{name: "diff", sets: two(&o.diff, "ID@STEP ID@STEP"), usage: "show how the states of two steps differ"},
				{name: "fork", sets: actionValue("ID@STEP"), usage: "begin a new run from a step of an old one"},
				{name: "set", sets: list(&o.set), usage: "with --resume or --fork: set a state key before the run resumes, `KEY=JSON`; may be repeated", with: []string{"resume", "fork"}, not: []string{"answer", "answers"}},
				{name: "watch", sets: list(&o.watched), usage: "with --agent, --resume or --fork: show each change of a `KEY` of the state of a graph; may be repeated. Without a key: with --validate, check again whenever a file of the agent changes, with --rag, update the knowledge base when documents change, until Ctrl-C", bare: watchFiles, with: []string{"agent", "resume", "fork", "validate", "rag"}},
				{name: "runs-prune", sets: on(&o.prune), usage: "forget runs that have ended, as --older, --keep and --where say, or without them, retention in the configuration; runs at work, suspended or interrupted stay"},
				{name: "older", sets: single(once{value: &o.older, kind: "TIME", check: checkAge}), usage: "with --runs-prune: only runs older than this, such as 30d or 12h", with: []string{"runs-prune"}},
				{name: "keep", sets: number(&o.keep, 0), usage: "with --runs-prune: keep the `N` newest runs", with: []string{"runs-prune"}},
			},
		},
		o.scheduleSection(),
		{
			name: "knowledge", title: "Answer from documents",
			common: []flagSpec{
				{name: "rag", sets: word(&o.knowledge.base, "RAG"), usage: "answer from a knowledge base", not: []string{"agent"}},
				{name: "rag-add", sets: list(&o.knowledge.add), usage: "with --rag: add the documents at `PATH`, a pattern or an address, creating the knowledge base if needed; may be repeated", with: []string{"rag"}, not: notBuilt},
			},
			more: []flagSpec{
				{name: "rag-remove", sets: list(&o.knowledge.remove), usage: "with --rag: remove the documents of this `SOURCE`; may be repeated", with: []string{"rag"}, not: notBuilt},
				{name: "rag-set", sets: list(&o.knowledge.set), usage: "with --rag: change settings, `KEY=VALUE,...`; with --rag-query and --rag-eval try them only; may be repeated", with: []string{"rag", "agent"}},
				{name: "rebuild-rag", sets: on(&o.knowledge.rebuild), usage: "with --rag or --agent: update the knowledge base from its documents", with: []string{"rag", "agent"}, not: notBuilt},
				{name: "rag-query", sets: word(&o.knowledge.query, "TEXT"), usage: "with --rag or --agent: show what would be found for a question, and why", with: []string{"rag", "agent"}},
				{name: "rag-eval", sets: word(&o.knowledge.eval, "FILE"), usage: "with --rag or --agent: measure how well the answers to the questions in a JSON Lines file are found", with: []string{"rag", "agent"}},
				{name: "budget", sets: word(&o.budget, "AMOUNT"), usage: "with --rag: what building, --rag-query and --rag-eval may use, in dollars, or in tokens as 200000tokens; with --resume, --fork and --schedule: what the run may use", with: []string{"rag", "resume", "fork", "schedule"}},
			},
		},
		{
			name: "tools", title: "Use tools",
			common: []flagSpec{
				{name: "yes", short: "y", sets: on(&o.yes), usage: "run tools without asking; denied calls stay denied"},
				{name: "call-tool", sets: two(&o.callTool, "NAME JSON"), usage: "run a tool with these arguments"},
			},
			more: []flagSpec{
				{name: "build-tools", sets: on(new(bool)), usage: "prepare the scripts of tools to be run by hand; with -a those of an agent"},
				{name: "tool-schema", sets: actionValue("FILE"), usage: "show what models see of the tools in a script"},
				{name: "argc-eval", sets: actionValue("SCRIPT"), usage: "print the shell code that reads the arguments of a script"},
			},
		},
		{
			name: "output", title: "Choose the output",
			common: []flagSpec{
				{name: "output", sets: choice(&o.output, "FORMAT", []string{outputText, outputJSON, outputNDJSON, outputSARIF, outputGitHub}), usage: "how to print the answer: text, json (one object) or ndjson (every event); with --validate also sarif, or github for annotations"},
				{name: "quiet", short: "q", sets: on(&o.quiet), usage: "do not show the progress of a run", not: []string{"verbose"}},
				{name: "verbose", short: "v", sets: counter(&o.verbose), usage: "``show more; -vv shows most"},
			},
			more: []flagSpec{
				{name: "tail-logs", sets: on(new(bool)), usage: "follow the log file"},
				{name: "disable-log-colors", sets: on(&o.plainLogs), usage: "with --tail-logs: without colors", with: []string{"tail-logs"}},
			},
		},
		{
			name: "server", title: "Serve programs and browsers",
			common: []flagSpec{
				{name: "serve", sets: actionValue("ADDR"), usage: "serve the REST API, the OpenAI-compatible API and the page, by default at 127.0.0.1:3400; with none, open no port and only start and resume runs", bare: configuredAddress},
				{name: "acp", sets: on(new(bool)), usage: "work as an agent of an editor: speak the Agent Client Protocol on standard input and output"},
				{name: "mcp", sets: on(new(bool)), usage: "serve the agents as tools over MCP on standard input and output; with --agent only that one"},
			},
			more: []flagSpec{
				{name: "healthcheck", sets: actionValue("URL"), usage: "exit with status 0 if a server works, else 1: the one at this URL, or the configured one", bare: configuredAddress},
				{name: "server", sets: word(&o.server, "URL"), usage: "work with the server at this URL, as LOKI_SERVER does; LOKI_SERVER_KEY is its key"},
				{name: "key", sets: two(new([][2]string), "VERB KEY"), usage: "add: make a key of the server for a person or a program, and print it; revoke: take the key with this ID out of the configuration"},
				{name: "trigger-test", sets: two(&o.triggerTest, "NAME FILE"), usage: "show the run that a trigger would start for the body in FILE (standard input if it is -), without starting it"},
				{name: "alert-test", sets: actionValue("NAME"), usage: "send a test message to each target of an alert"},
				{name: "dead-letters", sets: on(new(bool)), usage: "list the deliveries to triggers that started no run"},
				{name: "dead-retry", sets: actionValue("ID"), usage: "start the run of a dead letter, or with all, the runs of all dead letters"},
				{name: "scopes", sets: word(&o.scopes, "LIST"), usage: "with --key add: what the key allows, by default read,write", with: []string{"api-key"}},
				{name: "claim-sessions", sets: actionValue("SUBJECT"), usage: "give the sessions and runs of the command line to a subject of the server"},
				{name: "migrate-store", sets: on(new(bool)), usage: "copy the sessions and runs in files into the database that store names; with --dry-run only count them"},
			},
		},
		{
			name: "setup", title: "Set up",
			common: []flagSpec{
				{name: "setup", sets: on(new(bool)), usage: "add a provider, store a key, choose the default model or the editor's keys"},
				{name: "info", sets: on(&o.info), usage: "show the settings and places in use, or the agent, session, role or knowledge base that is named"},
				{name: "doctor", sets: on(new(bool)), usage: "check the installation: configuration, keys, servers, sandbox, databases and files; it changes nothing"},
				{name: "docs", sets: actionValue("PAGE"), usage: "print a page of the documentation, or find words in all pages; without PAGE list them", bare: allPages},
				{name: "list", sets: choice(new(string), "KIND", verbWords("list")), usage: "list agents, bundles, ignore (files of this directory), instructions (likewise), jobs (that outlive Loki), keys (of the server), macros, models, rags, roles, runs, secrets, sessions, skills, trusted (directories) or worktrees; with -a sessions and runs of an agent"},
				{name: "secret", sets: two(new([][2]string), "VERB SECRET"), usage: "add, get, update or delete a secret of the vault"},
				{name: "completions", sets: shellName(), usage: "print a script that completes options in a shell"},
			},
			more: []flagSpec{
				{name: "ask", sets: on(&o.ask), usage: "with --doctor: send the default model a short question, which uses tokens", with: []string{"doctor"}},
				{name: "limits", sets: on(new(bool)), usage: "show what is known of the limits of providers: calls at once, what is left, pauses"},
				{name: "reset", sets: word(&o.reset, "CLIENT"), usage: "with --limits: forget what is known of the limits of a client", with: []string{"limits"}},
				{name: "usage", sets: on(new(bool)), usage: "show the tokens and costs of today and of 7 days, by model"},
				{name: "sync-models", sets: on(new(bool)), usage: "fetch the list of known models from sync_models_url"},
				{name: "authenticate", sets: actionValue("CLIENT"), usage: "log in to a client with OAuth, or to an MCP server as mcp:NAME", bare: anyClient},
				{name: "shell-integration", sets: shellName(), usage: "print a script that binds Alt-e to --execute in a shell"},
				{name: "install", sets: choice(new(string), "CATEGORY", installable), usage: "restore the bundled files: agents, macros, functions or mcp_config"},
				{name: "bundle", sets: two(new([][2]string), "VERB BUNDLE"), usage: "install: agents, roles, macros, tools and MCP servers from the Git repository at a URL, URL#REF for a branch, tag or commit; update: install what is new in a bundle, your own changes stay; remove: remove what a bundle has installed and you have not changed. --dry-run shows what would change, --yes does not ask"},
				{name: "filter", sets: choice(&o.bundles.filter, "CATEGORY", remote.Categories()), usage: "with --bundle install: only " + strings.Join(remote.Categories(), ", "), with: []string{"install-from"}},
				{name: "install-force", sets: on(&o.bundles.force), usage: "with --bundle install or update: the files of the bundle replace yours", with: []string{"install-from", "update-bundle"}},
				{name: "update", sets: anyText(&o.update, "VERSION"), usage: "replace this program with its newest release, or with this one; with --test: accept the actual results of failing cases, and record their cassettes anew", bare: anyVersion},
				{name: "man", sets: on(new(bool)), usage: "print the manual page"},
				{name: "help", short: "h", sets: on(new(bool)), usage: "show the common options; --help all shows every one"},
				{name: "version", short: "V", sets: on(&o.version), usage: "show the version"},
			},
		},
	}
}

// forms returns the flags that are shown as another one with a word that chooses among them: --list-models as
// --list models. Both spellings mean the same.
func (o *options) forms() []flagSpec {
	return []flagSpec{
		{name: "list-sessions", form: "list sessions", sets: on(new(bool)), usage: "list the sessions; with -a those of an agent"},
		{name: "list-agents", form: "list agents", sets: on(new(bool)), usage: "list the agents"},
		{name: "list-trusted", form: "list trusted", sets: on(new(bool)), usage: "list the directories that you trust"},
		{name: "list-ignore", form: "list ignore", sets: on(new(bool)), usage: "list the files that hide others from models in this directory"},
		{name: "list-skills", form: "list skills", sets: on(new(bool)), usage: "list the skills for models in this directory"},
		{name: "list-instructions", form: "list instructions", sets: on(new(bool)), usage: "list the files that instruct models in this directory"},
		{name: "list-jobs", form: "list jobs", sets: on(new(bool)), usage: "list the jobs that outlive Loki"},
		{name: "list-worktrees", form: "list worktrees", sets: on(new(bool)), usage: "list the copies of repositories in which agents work"},
		{name: "list-rags", form: "list rags", sets: on(new(bool)), usage: "list the knowledge bases"},
		{name: "list-models", form: "list models", sets: on(&o.listModels), usage: "list the chat models"},
		{name: "list-roles", form: "list roles", sets: on(new(bool)), usage: "list the roles"},
		{name: "list-macros", form: "list macros", sets: on(new(bool)), usage: "list the macros"},
		{name: "list-secrets", form: "list secrets", sets: on(new(bool)), usage: "list the names of the secrets"},
		{name: "list-bundles", form: "list bundles", sets: on(new(bool)), usage: "list the installed bundles"},
		{name: "list-api-keys", form: "list keys", sets: on(new(bool)), usage: "list the keys of the server"},
		{name: "add-secret", form: "secret add", sets: actionValue("NAME"), usage: "put a secret into the vault"},
		{name: "get-secret", form: "secret get", sets: actionValue("SECRET"), usage: "print a secret"},
		{name: "update-secret", form: "secret update", sets: actionValue("SECRET"), usage: "change a secret"},
		{name: "delete-secret", form: "secret delete", sets: actionValue("SECRET"), usage: "delete a secret"},
		{name: "install-from", form: "bundle install", sets: actionValue("URL"), usage: "install agents, roles, macros, tools and MCP servers from a Git repository, URL#REF for a branch, tag or commit; --dry-run shows what would change, --yes does not ask"},
		{name: "update-bundle", form: "bundle update", sets: actionValue("BUNDLE"), usage: "install what is new in a bundle; your own changes stay"},
		{name: "remove-bundle", form: "bundle remove", sets: actionValue("BUNDLE"), usage: "remove what a bundle has installed and you have not changed"},
		{name: "api-key", form: "key add", sets: actionValue("SUBJECT"), usage: "make a key of the server for a person or a program, and print it"},
		{name: "revoke-api-key", form: "key revoke", sets: actionValue("ID"), usage: "take a key out of the configuration"},
	}
}

// flagText returns how the flag called name is shown.
func flagText(name string) string {
	for _, f := range new(options).forms() {
		if f.name == name {
			return "--" + f.form
		}
	}
	return "--" + name
}

// verbWords returns the words that choose what a flag does, sorted; nil for most flags.
func verbWords(name string) []string { return slices.Sorted(maps.Keys(byVerb(name))) }

// byVerb returns the flags that are shown as the flag called name with a word, by this word.
func byVerb(name string) map[string]string {
	does := make(map[string]string)
	if name == "list" {
		does["runs"] = "runs" // which has a flag of its own, too
	}
	for _, f := range new(options).forms() {
		if flag, word, _ := strings.Cut(f.form, " "); flag == name {
			does[word] = f.name
		}
	}
	return does
}

// check finds combinations of flags that make no sense, and chooses the action.
func (o *options) check(set *pflag.FlagSet) (err error) {
	o.flags, o.output = set, cmp.Or(o.output, outputText)
	o.hasSession = set.Changed("session")
	for _, f := range o.all() {
		if err := f.check(set); err != nil {
			return err
		}
	}
	if o.test != "" && set.Changed("update") {
		o.rewrite = true
		if o.update != anyVersion { // the word behind it is one more path
			o.text = append([]string{o.update}, o.text...)
		}
	}
	o.watch = slices.Contains(o.watched, watchFiles)
	o.knowledge.watch = o.watch && o.knowledge.base != "" && o.validate == ""
	if o.action, err = chooseAction(set, o.text); err != nil {
		return err
	}
	if f := set.Lookup(o.action.flag); f != nil {
		o.value = f.Value.String()
	}
	if _, err := o.limit(); err != nil {
		return err
	}
	if err := o.checkKnowledge(); err != nil {
		return err
	}
	for _, m := range o.mistakes() {
		if m.is {
			return m.err
		}
	}
	return nil
}

// mistake is a combination of values that makes no sense.
type mistake struct {
	is  bool // it was made
	err error
}

// mistakes returns the combinations of values that make no sense. The first that was made is reported.
func (o *options) mistakes() []mistake {
	wrong := func(format string, args ...any) *fault.Error { return fault.New(fault.Usage, format, args...) }
	watchesBase, otherKey := o.action.flag == "rag" && o.knowledge.watch, func(key string) bool { return key != watchFiles }
	return []mistake{
		{strings.HasPrefix(o.test, "--"), wrong("flag --test: a path is expected, not %q", o.test).WithHint("write the path right behind it: loki --test PATH %s", o.test)},
		{len(o.callTool) > 1, wrong("flag --call-tool was given before")},
		{slices.Contains(o.files, ""), wrong("flag --file: it is empty")},
		{o.sampling.maxOutput < 0, wrong("flag --max-output: %d is not a number of tokens", o.sampling.maxOutput)},
		{o.jobs < 1 || o.jobs > 1000, wrong("flag --jobs: %d is not between 1 and 1000", o.jobs)},
		{o.validate == "" && (o.output == outputSARIF || o.output == outputGitHub), wrong("flag --output: %s is for --validate", o.output)},
		{o.validate != "" && slices.ContainsFunc(o.watched, otherKey), wrong("flag --watch: with --validate it takes no key")},
		{watchesBase && len(o.watched) > 1 || o.action.flag == "rag" && len(o.watched) > 0 && !o.watch, wrong("flag --watch: with --rag it takes no key")},
		{watchesBase && len(o.text)+len(o.files) > 0, wrong("flag --watch: with --rag no question goes with it").WithHint("ask in another terminal")},
		{o.validate == "" && o.watch && !watchesBase, wrong("flag --watch needs a key of the state: --watch KEY")},
		{o.watch && o.output != outputText, wrong("flag --watch: what it prints has no form %s", o.output).WithHint("leave out --output, or --watch")},
		{
			o.format != "" && slices.Contains(graphFormats, o.format) != (o.graph != ""),
			wrong("flag --format: %s is none of the forms here", o.format).WithHint("with --graph: %s; with --export: %s", strings.Join(graphFormats, ", "), strings.Join(export.Formats(), ", ")),
		},
		{o.mostRuns < 0, wrong("flag --limit: a number of runs from 0 is expected, not %d", o.mostRuns)},
		{o.keep < 0, wrong("flag --keep: a number of runs from 0 is expected, not %d", o.keep)},
		{o.depth < 0, wrong("flag --depth: a number of levels from 0 is expected, not %d", o.depth)},
		{o.state && o.stepN == oneStep, wrong("flag --step: with --state it needs the number of a super-step, from 0")},
		{!o.state && o.stepN == "0", wrong("flag --step: a run does at least one super-step")},
		{o.cancel == cancelMany && o.where == "", wrong("flag --cancel needs the ID of a run, or --where EXPR").WithHint("loki --runs lists the runs")},
		{o.cancel != "" && o.cancel != cancelMany && o.where != "", wrong("flags --cancel ID and --where contradict each other")},
		{o.resumeAll != "" && o.resume != resumeNewest, wrong("flag --all: with it --resume takes no ID")},
	}
}

// check reports that f is given without what it needs, or beside what contradicts it.
func (f flagSpec) check(set *pflag.FlagSet) error {
	if !set.Changed(f.name) {
		return nil
	}
	if len(f.with) > 0 && !slices.ContainsFunc(f.with, set.Changed) {
		with := make([]string, len(f.with))
		for i, name := range f.with {
			with[i] = flagText(name)
		}
		return fault.New(fault.Usage, "flag %s goes with %s", flagText(f.name), text.Or(with))
	}
	if i := slices.IndexFunc(f.not, set.Changed); i >= 0 {
		return fault.New(fault.Usage, "flags %s and %s contradict each other", flagText(f.name), flagText(f.not[i]))
	}
	return nil
}

func efforts() []string { return strings.Split(provider.EffortNames(), ", ") }
