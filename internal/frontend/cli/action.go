package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"loki/internal/base/fault"
	"loki/internal/frontend/api"
)

// need is what an action requires before it starts.
type need int

const (
	needNothing need = iota // not even the configuration
	needConfig
	needModel // the configuration, with a model unless one is named
)

// action is one thing that the command can do. Its flag asks for it, and the first of
// [actions] whose flag is given is done.
type action struct {
	flag  string // "" needs no flag
	needs need

	looks   bool     // it only shows, writes nothing, and takes no text
	ofBase  bool     // it may be about the knowledge base of --rag
	takes   string   // the flag of another action that says something else to this one
	alone   bool     // no other flag but --output and those of beside goes with it, and no text
	words   bool     // the text belongs to its value
	beside  []string // flags that go with one that is alone
	refuses []string // flags that do not go with it
	why     string   // is added where one of them is given

	// One of both does it. Work reaches models or runs agents, and is shown by a face, which
	// reports its error in machine output too.
	do   func(c *command, ctx context.Context) error
	work func(c *command, ctx context.Context, face *face) error

	// Each action has one of these. Remote does it at a server; face is nil for what is no work. What has noServer
	// could be meant for the server that LOKI_SERVER names, but does not work there, and is refused. What is local is
	// about this computer and done here.
	remote   func(c *command, ctx context.Context, s *farServer, face *face) error
	noServer bool
	local    bool
}

// What a resumed run has from its beginning, what an agent says itself, and what a graph
// does.
var (
	begun = []string{
		"agent", "agent-variable", "file", "dry-run", "prompt", "role", "session", "empty-session", "save-session", "execute", "code", "schema",
		"effort", "temperature", "top-p", "max-output", "map", "rag", "continue", "skill", "mode", "accept-plan", "priority", "concurrency-key", "overlap",
	}
	ofMacro = []string{
		"agent", "agent-variable", "file", "prompt", "role", "session", "empty-session", "save-session", "execute", "code", "schema", "map", "rag", "output", "continue", "skill", "mode",
	}
	ofPlan  = []string{"prompt", "role", "session", "empty-session", "save-session", "continue", "execute", "code", "schema", "effort", "temperature", "top-p", "max-output", "map", "rag", "answers", "break", "step", "watch", "skill", "mode"}
	ofAgent = []string{"prompt", "role", "execute"}
	ofGraph = []string{"continue", "session", "empty-session", "save-session", "code", "schema", "effort", "temperature", "top-p", "max-output", "skill", "mode"}
)

// actions returns what the command can do. Asking the model, which is last, needs no flag.
func actions() []action {
	return append(scheduleActions(), []action{
		{flag: "completions", do: (*command).printCompletions, local: true},
		{flag: "shell-integration", do: (*command).printIntegration, local: true},
		{flag: "argc-eval", do: (*command).argcEval, local: true}, // by scripts, which no configuration concerns
		{flag: "man", do: (*command).printManual, alone: true, local: true},
		{flag: "docs", do: (*command).showDocs, alone: true, words: true, beside: []string{"quiet"}, local: true},
		{flag: "print-schema", do: (*command).printSchema, alone: true, local: true},
		{flag: "init-agent", needs: needConfig, do: (*command).initAgent, alone: true, beside: []string{"kind"}, local: true},
		{flag: "doctor", do: (*command).examine, alone: true, beside: []string{"strict", "ask"}, local: true}, // also if the configuration is broken
		{flag: "healthcheck", do: (*command).healthcheck, alone: true, local: true},
		{flag: "setup", needs: needConfig, do: (*command).setUpAgain, alone: true, local: true},
		{flag: "serve", needs: needConfig, do: (*command).serve, alone: true, local: true},
		{flag: "acp", needs: needConfig, do: (*command).serveACP, alone: true, beside: []string{"agent", "model", "role", "rag", "yes"}, local: true},
		{flag: "mcp", needs: needConfig, do: (*command).serveMCP, alone: true, beside: []string{"agent"}, local: true},
		{flag: "api-key", needs: needConfig, do: (*command).makeKey, alone: true, beside: []string{"scopes"}, local: true},
		{flag: "list-api-keys", needs: needConfig, looks: true, do: (*command).listKeys, alone: true, local: true},
		{flag: "revoke-api-key", needs: needConfig, do: (*command).revokeKey, alone: true, local: true},
		{flag: "claim-sessions", needs: needConfig, do: (*command).claimSessions, alone: true, local: true},
		{flag: "migrate-store", needs: needConfig, do: (*command).migrateStore, alone: true, beside: []string{"dry-run"}, local: true},
		{flag: "trigger-test", needs: needConfig, looks: true, do: (*command).testTrigger, alone: true, local: true},
		{flag: "alert-test", needs: needConfig, do: (*command).testAlert, alone: true, local: true},
		{flag: "dead-letters", needs: needConfig, looks: true, do: (*command).listDead, alone: true, noServer: true},
		{flag: "dead-retry", needs: needConfig, do: (*command).retryDead, alone: true, noServer: true},
		{flag: "resume", needs: needConfig, work: (*command).resumeRun, remote: (*command).resumeRemotely, refuses: begun, why: "the run resumes as it began"},
		{flag: "attach", needs: needConfig, work: (*command).attach, remote: (*command).attachRemotely, alone: true, beside: []string{"server", "quiet", "verbose"}},
		{flag: "fork", needs: needConfig, work: (*command).forkRun, remote: (*command).forkRemotely, refuses: begun, why: "the run resumes as it began"},
		{flag: "signal", needs: needConfig, do: (*command).sendSignal, remote: (*command).sendSignalAt, alone: true, beside: []string{"server", "quiet"}},
		{flag: "map", needs: needModel, do: (*command).mapRows, refuses: []string{"agent", "session", "continue", "file", "execute", "output", "rag"}, noServer: true},
		{flag: "list-models", needs: needConfig, looks: true, do: (*command).listModels, remote: listRemotely((*farServer).chatModels, func(m api.Model) []string { return []string{m.ID} })},
		{flag: "list-agents", needs: needConfig, looks: true, do: (*command).listAgents, remote: listRemotely((*farServer).Agents, func(a api.Agent) []string { return []string{a.Name, a.Description} })},
		{flag: "list-rags", needs: needConfig, looks: true, do: (*command).listBases, remote: listRemotely((*farServer).RAGs, func(r api.RAG) []string { return []string{r.Name} })},
		{flag: "list-macros", needs: needConfig, looks: true, do: (*command).listMacros, noServer: true},
		{flag: "list-roles", needs: needConfig, looks: true, do: (*command).listRoles, remote: listRemotely((*farServer).Roles, func(r api.Role) []string { return []string{r.Name} })},
		{flag: "list-sessions", needs: needConfig, looks: true, do: (*command).listSessions, remote: (*command).listSessionsAt},
		{flag: "delete-session", needs: needConfig, do: (*command).deleteSession, noServer: true},
		{flag: "rename-session", needs: needConfig, do: (*command).renameSession, noServer: true},
		{flag: "export", needs: needConfig, looks: true, do: (*command).exportTalk, noServer: true},
		{flag: "memory", needs: needConfig, do: (*command).remember, alone: true, words: true, beside: []string{"agent"}, noServer: true},
		{flag: "search", needs: needConfig, do: (*command).searchRecords, noServer: true},
		{flag: "limits", needs: needConfig, do: (*command).showLimits, alone: true, beside: []string{"reset"}, noServer: true},
		{flag: "usage", needs: needConfig, looks: true, do: (*command).showUsage, noServer: true},
		{flag: "call-tool", needs: needConfig, do: (*command).callTool, local: true},
		{flag: "build-tools", needs: needConfig, do: (*command).buildTools, local: true},
		{flag: "tool-schema", needs: needConfig, looks: true, do: (*command).toolSchema, local: true},
		{flag: "add-secret", needs: needConfig, do: (*command).addSecret, alone: true, local: true},
		{flag: "get-secret", needs: needConfig, do: (*command).getSecret, alone: true, local: true},
		{flag: "update-secret", needs: needConfig, do: (*command).updateSecret, alone: true, local: true},
		{flag: "delete-secret", needs: needConfig, do: (*command).deleteSecret, alone: true, local: true},
		{flag: "list-secrets", needs: needConfig, looks: true, do: (*command).listSecrets, alone: true, local: true},
		{flag: "authenticate", needs: needConfig, do: (*command).authenticate, alone: true, local: true},
		{flag: "sync-models", needs: needConfig, do: (*command).syncModels, local: true},
		{flag: "tail-logs", needs: needConfig, looks: true, do: (*command).tailLogs, local: true},
		{flag: "test", needs: needConfig, do: (*command).testAgents, takes: "update", refuses: slices.Concat([]string{"model", "yes"}, begun), why: "the cases say it", local: true},
		{flag: "update", do: (*command).update, alone: true, beside: []string{"force", "quiet"}, local: true}, // also if the configuration is broken
		{flag: "trust", needs: needConfig, do: (*command).trust, alone: true, beside: []string{"yes"}, local: true},
		{flag: "list-ignore", needs: needConfig, looks: true, do: (*command).listIgnored, alone: true, local: true},
		{flag: "list-skills", needs: needConfig, looks: true, do: (*command).listSkills, local: true},
		{flag: "list-worktrees", needs: needConfig, looks: true, do: (*command).listWorktrees, alone: true, local: true},
		{flag: "remove-worktree", needs: needConfig, do: (*command).removeWorktree, alone: true, beside: []string{"yes"}, local: true},
		{flag: "list-jobs", needs: needConfig, looks: true, do: (*command).listJobs, alone: true, local: true},
		{flag: "kill-job", needs: needConfig, do: (*command).killJob, alone: true, local: true},
		{flag: "list-instructions", needs: needConfig, looks: true, do: (*command).listInstructions, alone: true, local: true},
		{flag: "list-trusted", needs: needConfig, looks: true, do: (*command).listTrusted, alone: true, local: true},
		{flag: "untrust", needs: needConfig, do: (*command).untrust, alone: true, local: true},
		{flag: "validate", needs: needConfig, looks: true, do: (*command).validate, local: true},
		{flag: "graph", needs: needConfig, looks: true, do: (*command).drawGraph, remote: (*command).drawGraphAt},
		{flag: "info", needs: needConfig, looks: true, do: (*command).info, ofBase: true, local: true},
		{flag: "install", needs: needConfig, do: (*command).install, local: true},
		{flag: "install-from", needs: needConfig, do: (*command).installFrom, local: true},
		{flag: "list-bundles", needs: needConfig, looks: true, do: (*command).listBundles, local: true},
		{flag: "update-bundle", needs: needConfig, do: (*command).updateBundle, local: true},
		{flag: "remove-bundle", needs: needConfig, do: (*command).removeBundle, local: true},
		{flag: "runs", needs: needConfig, looks: true, do: (*command).listRuns, remote: (*command).listRunsAt},
		{flag: "run", needs: needConfig, looks: true, do: (*command).showRun, remote: (*command).showRunAt},
		{flag: "diff", needs: needConfig, looks: true, do: (*command).diffStates, remote: (*command).diffStatesAt},
		{flag: "cancel", needs: needConfig, do: (*command).cancelRuns, remote: (*command).cancelRunAt, alone: true, beside: []string{"server", "where", "yes", "quiet", "dry-run"}},
		{flag: "runs-prune", needs: needConfig, do: (*command).pruneRuns, noServer: true},
		{flag: "rag-query", needs: needConfig, do: (*command).queryBase, ofBase: true, noServer: true},
		{flag: "rag-eval", needs: needConfig, do: (*command).evaluate, ofBase: true, noServer: true},
		{flag: "plan", needs: needModel, work: (*command).plan, refuses: ofPlan, why: "the planner is an agent with instructions of its own", noServer: true},
		{flag: "macro", needs: needModel, work: (*command).runMacro, refuses: ofMacro, why: "the steps of a macro say it", noServer: true},
		{flag: "rag", needs: needModel, work: (*command).useBase, remote: (*command).answerRemotely, refuses: []string{"execute"}, why: "a command is not written from documents"},
		{flag: "agent", needs: needModel, work: (*command).runAgent, remote: (*command).answerRemotely, refuses: ofAgent, why: "an agent has instructions of its own"},
		{flag: "execute", needs: needModel, work: (*command).execute, noServer: true},
		{needs: needModel, work: (*command).answer, remote: (*command).answerRemotely},
	}...)
}

// chooseAction returns the action that the flags ask for. It is an error if they ask for two,
// or if flags or a text are given that do not go with it. An agent or a knowledge base may be what
// another action is about.
func chooseAction(flags *pflag.FlagSet, text []string) (action, error) {
	given := slices.DeleteFunc(actions(), func(a action) bool { return a.flag != "" && !flags.Changed(a.flag) })
	first := given[0]
	if err := first.check(flags, text); err != nil {
		return first, err
	}
	second := given[min(1, len(given)-1)]
	if first.flag != second.flag && second.flag != "" && second.flag != "agent" && second.flag != first.takes && (second.flag != "rag" || !first.ofBase) {
		return first, fault.New(fault.Usage, "flags %s and %s contradict each other", flagText(first.flag), flagText(second.flag))
	}
	return first, nil
}

// check reports the first flag that does not go with the action, and text where there is
// none.
func (a action) check(flags *pflag.FlagSet, text []string) error {
	if a.remote == nil && flags.Changed("server") {
		return noServer(flagText(a.flag), true)
	}
	if err := refuse(flags, a.flag, a.refuses, a.why); err != nil {
		return err
	}
	others := flags.NFlag() - 1
	for _, name := range append(a.beside, "output") {
		if flags.Changed(name) {
			others--
		}
	}
	if a.alone && (others > 0 || len(text) > 0 && !a.words) {
		err := fault.New(fault.Usage, "%s cannot be combined with other flags or a text", flagText(a.flag))
		if len(a.beside) > 0 {
			var allowed []string
			for _, name := range a.beside {
				allowed = append(allowed, flagText(name))
			}
			return err.WithHint("the flags that it allows: %s", strings.Join(allowed, ", "))
		}
		return err
	}
	if a.looks && len(text) > 0 {
		return fault.New(fault.Usage, "there is no text with %s, but %q was given", flagText(a.flag), strings.Join(text, " "))
	}
	if (a.flag == "resume" || a.flag == "fork") && len(text) > 0 {
		return fault.New(fault.Usage, "there is no text with --%s, but %q was given", a.flag, strings.Join(text, " ")).
			WithHint("a run is named directly after the flag, before others: --%s ID; a question that waits is answered with --answer TEXT", a.flag)
	}
	return nil
}

// refuse returns an error if one of the flags called refused is given, which do not go with the
// one called flag.
func refuse(flags *pflag.FlagSet, flag string, refused []string, why string) error {
	for _, name := range refused {
		if flags.Changed(name) {
			if why != "" {
				why = ": " + why
			}
			return fault.New(fault.Usage, "flag %s does not go with %s%s", flagText(name), flagText(flag), why)
		}
	}
	return nil
}
