// Package batch asks one question for each line of a file.
//
// The rows are the lines of a JSON Lines file, each a prompt. The answers are another such
// file, to which a record is appended as soon as a row is answered, in the order in which
// that happens. A row whose answer is there is not asked again, so that interrupted work resumes
// where it stopped; a failed row is. What counts as the same row is its
// prompt, and whatever else the answer depends on, not its place in the file.
package batch

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
)

// MaxLine bounds a line of the rows and of the answers, in bytes.
const MaxLine = 16 << 20

// Row is one prompt.
type Row struct {
	Line   int             // in the file, from 1
	ID     json.RawMessage // the row's own, nil if it has none
	Prompt string
	Key    string // identifies the row in the answers; unique among the rows
}

// Read reads the rows. A line is a JSON string, the prompt, or an object, whose member
// prompt is the prompt. If there is a template the prompt is that, with each {{name}}
// replaced by the member called name; for strings {{prompt}} is the string. The line itself
// follows a template that names nothing: a string as it is, an object as JSON. Empty lines
// are skipped. under is what answers depend on besides the prompts.
//
// The error has the code Usage and names the line. It is an error, too, if the template
// makes the same prompt of all rows though they differ by more than their member id.
func Read(r io.Reader, template, under string) ([]Row, error) {
	if err := checkTemplate(template); err != nil {
		return nil, err
	}
	var rows []Row
	same := newSameness()
	occurrences := make(map[string]int)
	lines := bufio.NewScanner(text.UnmarkedReader(r))
	lines.Buffer(nil, MaxLine)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		row, err := parse(line, template)
		if format, convert := formatOf(line); err != nil && len(rows) == 0 && format != "" {
			return nil, fault.New(fault.Usage, "line %d is %s, and --map reads JSON Lines, one object or string per line", n, format).WithHint("convert it: %s", convert)
		}
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "line %d", n)
		}
		row.Line = n
		same.add(row.Prompt, line)
		hash := sha256.Sum256([]byte(under + "\x00" + row.Prompt))
		row.Key = hex.EncodeToString(hash[:12])
		// The same prompt may be there more than once, and is then asked as often.
		occurrences[row.Key]++
		if again := occurrences[row.Key]; again > 1 {
			row.Key = fmt.Sprintf("%s-%d", row.Key, again)
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "line %d", n+1)
	}
	if template != "" && len(rows) > 1 && len(same.prompts) == 1 && len(same.rows) > 1 {
		return nil, fault.New(fault.Usage, "the text makes the same prompt of all %d lines, though they differ", len(rows)).
			WithHint("name a member that differs, such as {{name}}, or none: the line then follows the text")
	}
	return rows, nil
}

// formatOf returns what a file that begins with line is instead of JSON Lines, and the command that converts it; "" if it is
// not known.
func formatOf(line []byte) (format, convert string) {
	switch i := bytes.IndexAny(line, ",;\t"); {
	case line[0] == '[':
		return "a JSON array", "jq -c '.[]' FILE > FILE.jsonl"
	case line[0] != '{' && i > 0:
		const program = `import csv,json,sys; [print(json.dumps(r)) for r in csv.DictReader(sys.stdin, delimiter="%s")]`
		return "CSV", fmt.Sprintf("python3 -c '"+program+"' < FILE > FILE.jsonl", strings.ReplaceAll(string(line[i]), "\t", `\t`))
	}
	return "", ""
}

// sameness finds rows that differ but make the same prompt. Two of each are enough.
type sameness struct{ prompts, rows map[string]bool }

func newSameness() sameness { return sameness{make(map[string]bool), make(map[string]bool)} }

func (s sameness) add(prompt string, line []byte) {
	if len(s.prompts) < 2 {
		s.prompts[prompt] = true
	}
	if len(s.rows) < 2 {
		s.rows[withoutID(line)] = true
	}
}

// withoutID returns a line without its member id.
func withoutID(line []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil {
		return string(line)
	}
	delete(members, "id")
	data, err := json.Marshal(members) // in the order of the names
	if err != nil {
		return string(line)
	}
	return string(data)
}

// checkTemplate refuses a template that was meant to take members but names none that
// there can be.
func checkTemplate(template string) error {
	rest := placeholder().ReplaceAllString(template, "")
	if rest != template {
		return nil
	}
	if open := strings.Index(rest, "{{"); open >= 0 {
		wrong := rest[open:]
		if end := strings.Index(wrong, "}}"); end >= 0 {
			wrong = wrong[:end+2]
		}
		return fault.New(fault.Usage, "%s in the text names no member of a line: a name has letters, digits, _ and -", wrong).
			WithHint("write {{name}}, or leave it out: the line then follows the text")
	}
	return nil
}

func parse(text []byte, template string) (Row, error) {
	if !utf8.Valid(text) {
		return Row{}, errors.New("it is not text in UTF-8")
	}
	members := make(map[string]json.RawMessage)
	var prompt string
	if text[0] == '"' {
		if err := json.Unmarshal(text, &prompt); err != nil {
			return Row{}, err
		}
		members["prompt"] = text
	} else if err := json.Unmarshal(text, &members); err != nil {
		return Row{}, fmt.Errorf("it is neither a JSON string nor an object: %w", err)
	}
	row := Row{ID: members["id"]}
	var err error
	switch member, ok := members["prompt"]; {
	case placeholder().MatchString(template):
		row.Prompt, err = fill(template, members, text[0] == '"')
	case template != "":
		row.Prompt = template + "\n\n" + textOf(text)
	case !ok:
		err = errors.New("the object has no member prompt, and there is no text to put its members into")
	default:
		row.Prompt = textOf(member)
	}
	if err == nil && strings.TrimSpace(row.Prompt) == "" {
		err = errors.New("the prompt is empty")
	}
	return row, err
}

var placeholder = text.Regexp(`\{\{\s*([\w-]+)\s*\}\}`)

func fill(template string, members map[string]json.RawMessage, isString bool) (string, error) {
	var missing []string
	filled := placeholder().ReplaceAllStringFunc(template, func(match string) string {
		name := placeholder().FindStringSubmatch(match)[1]
		member, ok := members[name]
		if !ok {
			missing = append(missing, name)
		}
		return textOf(member)
	})
	if len(missing) > 0 && isString {
		return "", fmt.Errorf("it is a string, for which the text can name {{prompt}} only, not {{%s}}", missing[0])
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("it has no member %s", strings.Join(missing, ", "))
	}
	return filled, nil
}

// textOf is a string as it is, and any other value as JSON.
func textOf(member json.RawMessage) string {
	var s string
	if json.Unmarshal(member, &s) == nil {
		return s
	}
	return string(member)
}

// Record is a line of the answers.
type Record struct {
	Line   int             `json:"line"`
	ID     json.RawMessage `json:"id,omitempty"`
	Key    string          `json:"key"`
	Answer json.RawMessage `json:"answer,omitempty"` // a string, or the JSON that a schema asked for
	Model  string          `json:"model,omitempty"`
	Stop   chat.StopReason `json:"stop,omitempty"` // why the last reply ended
	Usage  *chat.Usage     `json:"usage,omitempty"`
	Text   string          `json:"text,omitempty"`  // the part of an answer that failed
	Error  string          `json:"error,omitempty"` // why there is no answer
	Code   string          `json:"code,omitempty"`  // of the error
}

// Ask answers one row. It fills Answer, Model, Stop, Usage and, if it fails, Text in.
type Ask func(ctx context.Context, row Row) (Record, error)

// Progress is how far a batch has come.
type Progress struct {
	Total    int // rows
	Before   int // answered by an earlier batch
	Answered int // by this one
	Failed   int
	Err      error // why the first of them failed, with its line
	Usage    chat.Usage
}

// Run asks for the rows that answers lacks, at most jobs at once, and calls report
// for each that is done. A row that fails does not end the others; the end of ctx and a
// failure to write do. Run returns when no question is under way.
func Run(ctx context.Context, rows []Row, answers *Answers, jobs int, ask Ask, report func(Progress)) (Progress, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := Progress{Total: len(rows)}
	var todo []Row
	for _, row := range rows {
		if answers.Has(row.Key) {
			p.Before++
		} else {
			todo = append(todo, row)
		}
	}
	report(p)
	var (
		mu   sync.Mutex // guards p
		wg   sync.WaitGroup
		next = make(chan Row)
	)
	for range min(jobs, len(todo)) {
		wg.Go(func() {
			for row := range next {
				rec, err := ask(ctx, row)
				if ctx.Err() != nil && err != nil {
					continue // it did not fail, it was not waited for
				}
				rec.Line, rec.ID, rec.Key = row.Line, row.ID, row.Key
				if err != nil {
					rec.Answer, rec.Error, rec.Code = nil, err.Error(), string(fault.CodeOf(err))
				}
				if appendErr := answers.Append(rec); appendErr != nil {
					cancel(appendErr)
					continue
				}
				mu.Lock()
				if rec.Error == "" {
					p.Answered++
				} else {
					p.Failed++
					if p.Err == nil {
						p.Err = fmt.Errorf("line %d: %w", row.Line, err)
					}
				}
				if rec.Usage != nil {
					p.Usage = p.Usage.Add(*rec.Usage)
				}
				report(p)
				mu.Unlock()
			}
		})
	}
feed:
	for _, row := range todo {
		select {
		case next <- row:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	return p, context.Cause(ctx)
}
