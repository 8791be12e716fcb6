package render

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
)

// GitHub prints what validation found about a file as commands of GitHub Actions, which shows them beside the lines.
// The path is as [Place] returns it.
func GitHub(w io.Writer, path string, findings graph.Findings) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "::%s file=%s", f.Severity, property.Replace(cmp.Or(f.File, path)))
		if f.Line > 0 {
			fmt.Fprintf(&b, ",line=%d,col=%d", f.Line, max(1, f.Column))
		}
		fmt.Fprintf(&b, ",title=%s::%s\n", property.Replace(string(f.Rule)), data.Replace(sentence(f)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sentence returns the message of a finding with its node and hint.
func sentence(f graph.Finding) string {
	text := f.Message
	if f.Node != "" {
		text = f.Node + ": " + text
	}
	if f.Hint != "" {
		text += "; " + f.Hint
	}
	return safe(text)
}

// Place returns the path of a file as programs other than Loki read it: with slashes, relative to dir for a file below it.
func Place(dir, file string) string {
	if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
		file = rel
	}
	return filepath.ToSlash(file)
}

// The parts of a log in the form SARIF 2.1.0, see https://docs.oasis-open.org/sarif/sarif/v2.1.0/.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
		FullDescription  sarifText `json:"fullDescription"`
		Help             sarifText `json:"help"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     graph.Severity  `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region *sarifRegion `json:"region,omitempty"`
		} `json:"physicalLocation"`
		Logical []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
)

// SARIF prints what validation found about a file as a log of SARIF 2.1.0, with the rules that the findings have. The path is
// as [Place] returns it, version that of the program.
func SARIF(w io.Writer, path string, findings graph.Findings, version string) error {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "loki", Version: version, Rules: []sarifRule{}}
	rules := &run.Tool.Driver.Rules
	for _, f := range findings {
		index := slices.IndexFunc(*rules, func(r sarifRule) bool { return r.ID == string(f.Rule) })
		if index < 0 {
			index = len(*rules)
			meaning := f.Rule.Meaning()
			plain := sarifText{Text: strings.ReplaceAll(meaning, "`", "")}
			*rules = append(*rules, sarifRule{ID: string(f.Rule), ShortDescription: plain, FullDescription: plain, Help: sarifText{Text: plain.Text, Markdown: meaning}})
		}
		var at sarifLocation
		at.Physical.Artifact.URI = address(cmp.Or(f.File, path))
		if f.Line > 0 {
			at.Physical.Region = &sarifRegion{f.Line, max(1, f.Column)}
		}
		if f.Path != "" {
			at.Logical = []sarifLogical{{f.Path}}
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: string(f.Rule), RuleIndex: index, Level: f.Severity, Message: sarifText{Text: sentence(f)}, Locations: []sarifLocation{at},
		})
	}
	doc, err := value.MarshalLines(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
	if err != nil {
		return err
	}
	_, err = w.Write(doc)
	return err
}

// address returns a path as a URI: a relative reference, or file:///.
func address(path string) string {
	if !filepath.IsAbs(filepath.FromSlash(path)) {
		return (&url.URL{Path: path}).String()
	}
	return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(path, "/")}).String()
}
