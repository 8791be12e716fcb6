//go:build unix

package flow_test

import "testing"

func TestKnowledge(t *testing.T) {
	t.Parallel()
	rules := "rules:\n  - match: {text: resin}\n    reply: With resin.\n" + answers
	u := begin(t, setup{rules: rules, rows: 80, files: map[string]string{
		"boats.md":  "A leaking hull is dried and sealed with resin.\n",
		"trains.md": "Trains leave from platform nine.\n",
	}})
	before := u.enter(".rag docs")
	u.answer(`(?i)(document|source)`)
	u.typed("boats.md")
	u.keys("Enter")
	u.answer(`Which embedding model\?\n.*builtin:hash compares words, not meanings`, "Enter")
	u.answer(`Chunk size`, "Enter")
	u.answer(`(?i)overlap`, "Enter")
	u.idle(before + 1)
	u.prompted("builtin:script)@docs>")
	u.do(".info rag", `boats\.md`)
	u.do("How is a leaking hull repaired?", `^With resin\.$`)
	u.do(".sources rag", `boats\.md`)
	u.do(".edit rag-docs", `nothing was changed`)
	u.write("edit", "boats.md\ntrains.md\n")
	u.do(".edit rag-docs")
	u.do(".rebuild rag")
	u.do(".info rag", `trains\.md`)
	u.do(".exit rag")
	u.prompted("builtin:script)>")
	u.do(".sources rag", `(?i)(no|not)`)
	u.do(".rag docs")
	u.prompted("builtin:script)@docs>")
}
