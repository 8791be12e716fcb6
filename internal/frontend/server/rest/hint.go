package rest

import (
	"regexp"
	"sync"
)

// hintFor returns a hint to users of the command line as one to clients of the API: what it says of commands and
// flags is said of endpoints and members. What is done on the server's own command line is named so. A hint
// that makes no sense here, such as that of a command of the REPL, is left out.
func hintFor(hint string) string {
	w := hintWords()
	if w.elsewhere.MatchString(hint) {
		return onServer + hint
	}
	for _, r := range w.known {
		hint = r.from.ReplaceAllString(hint, r.to)
	}
	switch {
	case w.command.MatchString(hint):
		return onServer + hint
	case w.foreign.MatchString(hint):
		return ""
	}
	return hint
}

// terminalHint returns a hint to clients of the API as one to users of the command line, which is a client: the commands that do what the
// endpoints do. A hint of another form stays as it is.
func terminalHint(hint string) string {
	for _, r := range terminalWords() {
		hint = r.from.ReplaceAllString(hint, r.to)
	}
	return hint
}

var terminalWords = sync.OnceValue(func() (list []wording) {
	for _, r := range [][2]string{
		{`GET /v1/runs/(\w+)/questions\b`, `loki --run $1`},
		{`GET /v1/runs/(\w+)`, `loki --run $1`},
		{`GET /v1/(agents|sessions|roles|rags|models)\b`, `loki --list $1`},
		{`POST /v1/runs/(\w+)/resume`, `loki --resume $1`},
		{`POST /v1/agents/([\w.-]+)/runs`, `loki -a $1`},
	} {
		list = append(list, wording{regexp.MustCompile(r[0]), r[1]})
	}
	return list
})

// onServer begins the hints of what users of the server's machine can do.
const onServer = "on the server: "

// words are what hints to users of the command line are made of.
type words struct {
	known     []wording
	elsewhere *regexp.Regexp // a command in another directory
	command   *regexp.Regexp // a command of the program
	foreign   *regexp.Regexp // a flag without one, or a command of the REPL
}

// wording is how a command or a flag reads in the API.
type wording struct {
	from *regexp.Regexp
	to   string
}

var hintWords = sync.OnceValue(func() words {
	w := words{
		elsewhere: regexp.MustCompile(`\bcd .* && loki -`),
		command:   regexp.MustCompile(`\bloki -`),
		foreign:   regexp.MustCompile(`(^|[\s(])(--?[a-z]|\.[a-z]+( |$))`),
	}
	for _, r := range [][2]string{
		{`\. loki --setup adds others; .* lists no clients`, ``},
		{`loki --fork (\w+)@(\w+) --force`, `POST /v1/runs/$1/fork with "step": $2, "force": true`},
		{`loki --fork (\w+)@(\w+)`, `POST /v1/runs/$1/fork with "step": $2`},
		{`loki --resume (\w+) --answers FILE, a YAML file with a line for each: (.+): ANSWER; or one of them: --answer .+=TEXT`, `POST /v1/runs/$1/answers with {"$2": "ANSWER"}`},
		{`loki --resume (\w+) --answers FILE, a YAML file with a line for each: (.+): ANSWER`, `POST /v1/runs/$1/answers with {"$2": "ANSWER"}`},
		{`after what was said since: loki --resume (\w+) --force`, `after what was said since: POST /v1/runs/$1/answers?force=true`},
		{`loki --resume (\w+) --budget AMOUNT`, `POST /v1/runs/$1/resume with a member budget`},
		{`loki --resume (\w+) --force`, `POST /v1/runs/$1/resume with "force": true`},
		{`loki --resume (\w+)`, `POST /v1/runs/$1/resume`},
		{`loki --run (\w+) lists the questions that wait`, `GET /v1/runs/$1/questions lists the questions that wait`},
		{`loki --run (\w+)`, `GET /v1/runs/$1`},
		{`loki --runs\b`, `GET /v1/runs`},
		{`loki --list (agents|sessions|roles|rags|models)`, `GET /v1/$1`},
		{`loki -a ([\w.-]+)`, `POST /v1/agents/$1/runs`},
		{`--agent-variable NAME VALUE`, `the member variables, {"NAME": "VALUE"}`},
		{`\bwith -m (\S+?:MODEL)`, `with "model": "$1"`},
		{`\bwith --yes`, `with "yes": true`},
	} {
		w.known = append(w.known, wording{regexp.MustCompile(r[0]), r[1]})
	}
	return w
})
