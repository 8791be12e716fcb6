package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"loki/internal/base/process/awake"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// window is how many bytes of output a result has at most.
const window = 64 << 10

// report is what a model reads about a job.
type report struct {
	Job     string `json:"job,omitempty"`
	Status  string `json:"status"`
	Exit    *int   `json:"exit,omitempty"`
	Reason  string `json:"reason,omitempty"`  // why it was killed
	Ready   *bool  `json:"ready,omitempty"`   // whether the output matched, if the call waited for that
	Matched *bool  `json:"matched,omitempty"` // likewise
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Dropped int64  `json:"dropped,omitempty"`
	Output  string `json:"output"`
	Sandbox string `json:"sandbox,omitempty"` // what the sandbox stopped or noticed
	Note    string `json:"note,omitempty"`
}

// report returns what there is to say about a job, with a part of its output.
func (l *List) report(j *job, p Part) report {
	r := report{Status: j.status(), From: p.From, To: p.To, Dropped: p.Dropped, Output: p.Text}
	if r.Status != Running {
		r.Exit, r.Reason = j.exit, j.reason
		l.mu.Lock()
		j.noted = true
		l.mu.Unlock()
	}
	if err := j.log.trouble(); err != nil {
		r.Note = fmt.Sprintf("Its log could not be written (%v), so output is missing.", err)
	}
	return r
}

// failed reports whether the job ended by itself and not well.
func (r report) failed() bool { return r.Exit != nil && *r.Exit != 0 }

func (r report) result() (tool.Result, error) {
	doc, err := value.Marshal(r)
	return tool.Result{Output: string(doc)}, err
}

// function is one of the tools.
type function struct {
	declared chat.Tool
	hints    tool.Hints
	run      func(ctx context.Context, call tool.Call) (tool.Result, error)
}

// Declaration implements [tool.Tool].
func (f *function) Declaration() chat.Tool { return f.declared }

// Hints implements [tool.Tool].
func (f *function) Hints() tool.Hints { return f.hints }

// Call implements [tool.Tool].
func (f *function) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	return f.run(ctx, call)
}

// longest is how long a call waits at most.
const longest = 300 * time.Second

// Tools returns the tools by which a model uses the jobs: job__output, job__kill and job__list.
func (l *List) Tools() []tool.Tool {
	declare := func(name, description, schema string, hints tool.Hints, run func(context.Context, tool.Call) (tool.Result, error)) tool.Tool {
		hints.MaxOutput = 8 * window // as JSON
		return &function{chat.Tool{Name: "job__" + name, Description: description, Parameters: json.RawMessage(schema)}, hints, run}
	}
	return []tool.Tool{
		declare("output", "Read what a job has printed from the byte `since` on, at most 64 KiB, and how it is. `to` of the result is the next `since`. With wait it returns when there is new output, when the output matches the pattern, or when the job has ended, and after the timeout in any case.",
			`{"type":"object","properties":{"id":{"type":"string"},"since":{"type":"integer","minimum":0,"default":0},"wait":{"type":"string","enum":["none","output","pattern","end"],"default":"none"},"pattern":{"type":"string","description":"A regular expression, with wait: pattern."},"timeout":{"type":"integer","minimum":1,"maximum":300,"default":30,"description":"In seconds."}},"required":["id"]}`,
			tool.Hints{ReadOnly: true, Timeout: longest + time.Minute, Instead: "Call job__output with wait and a longer timeout, or continue with other work."}, l.output),
		declare("kill", "End a job with all that it started.", `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`, tool.Hints{}, l.kill),
		declare("list", "List the jobs of this conversation.", `{"type":"object","properties":{}}`,
			tool.Hints{ReadOnly: true, Instead: "Wait for a job with job__output, or continue with other work."}, func(context.Context, tool.Call) (tool.Result, error) {
				doc, err := value.Marshal(map[string]any{"jobs": l.All()})
				return tool.Result{Output: string(doc)}, err
			}),
	}
}

func (l *List) output(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, err := tool.Decode[struct {
		ID, Wait, Pattern string
		Since, Timeout    int64
	}](call)
	if err != nil {
		return tool.Result{}, err
	}
	var pattern *regexp.Regexp
	switch args.Wait {
	case "", "none", "output", "end":
		if args.Pattern != "" {
			return tool.Result{}, errors.New(`argument "pattern" needs "wait": "pattern"`)
		}
	case "pattern":
		if args.Pattern == "" {
			return tool.Result{}, errors.New(`"wait": "pattern" needs the argument "pattern"`)
		}
		if pattern, err = regexp.Compile("(?m)" + args.Pattern); err != nil {
			return tool.Result{}, fmt.Errorf(`argument "pattern": %w`, err)
		}
	default:
		return tool.Result{}, fmt.Errorf(`argument "wait" is %q; there are none, output, pattern and end`, args.Wait)
	}
	timeout := 30 * time.Second
	if args.Timeout > 0 {
		timeout = min(time.Duration(args.Timeout)*time.Second, longest)
	}
	j, err := l.find(args.ID)
	switch {
	case err != nil:
		return tool.Result{}, fmt.Errorf("%w; job__list lists the jobs", err)
	case j == nil:
		return lostResult()
	}
	var noticed []sandbox.Refusal
	var matched *bool
	if args.Wait != "" && args.Wait != "none" {
		unwatch := j.watch()
		waiting, cancel := awake.WithTimeoutCause(ctx, timeout, nil)
		if args.Wait == "end" {
			select {
			case <-j.ended:
			case <-waiting.Done():
			}
		} else if found := j.log.wait(waiting, args.Since, pattern); pattern != nil {
			matched = &found
		}
		cancel()
		if noticed = unwatch(); ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
	}
	status := j.status() // before the output, so that one that has ended has all of it
	r := l.report(j, j.log.read(args.Since, window))
	r.Status, r.Matched = status, matched
	if status == Running {
		r.Exit, r.Reason = nil, ""
	} else if j.box != nil {
		noticed = append(noticed, j.box.Refusals(j.log.last(16<<10).Text, r.failed())...)
	}
	if len(noticed) > 0 {
		r.Sandbox = fmt.Sprintf("At level %s the sandbox stopped or noticed this: it %s.", j.level, sandbox.Refusals(noticed))
	}
	return r.result()
}

func (l *List) kill(_ context.Context, call tool.Call) (tool.Result, error) {
	args, err := tool.Decode[struct{ ID string }](call)
	if err != nil {
		return tool.Result{}, err
	}
	j, err := l.find(args.ID)
	switch {
	case err != nil:
		return tool.Result{}, fmt.Errorf("%w; job__list lists the jobs", err)
	case j == nil:
		return lostResult()
	}
	unwatch := j.watch()
	j.end("the model killed it")
	noticed := unwatch()
	l.mu.Lock()
	j.told = true
	l.mu.Unlock()
	r := l.report(j, j.log.last(4<<10))
	res, err := r.result()
	res.Refused = noticed
	return res, err
}

// lostResult is the result for a job of a program that has ended.
func lostResult() (tool.Result, error) {
	return report{Status: Lost, Note: "The program in which it ran has ended, and the job with it. Start it again if it is still needed."}.result()
}
