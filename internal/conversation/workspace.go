package conversation

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"loki/internal/agent/workspace"
	"loki/internal/agent/workspace/skill"
	"loki/internal/llm/event"
	"loki/internal/tool"
)

// workspaceRecord is what the workspace told the model, for the record of a question.
type workspaceRecord struct {
	Text  string           `json:"text"`
	Files []workspace.File `json:"files"` // with their digests
}

// findInstructions finds what the workspace tells the model of a question. A resumed question has it on record.
func (t *turn) findInstructions(ctx context.Context) error {
	w := t.c.fromWorkspace()
	if t.c.service.Workspace == nil || t.q.Aside {
		return nil
	}
	w.Instructions, w.Skills = t.resumed == nil && t.wantsWorkspace(), t.wantsSkills()
	if t.resumed != nil {
		w.Caller = Caller{}
	}
	if !w.Instructions && w.Skills == skill.None && len(t.q.Loaded) == 0 {
		return nil
	}
	in, skills, err := t.c.service.Workspace(ctx, w)
	if err != nil {
		return err
	}
	t.offer(ctx, skills, w.Skills)
	if !w.Instructions {
		return nil
	}
	for _, line := range in.Findings() {
		t.c.warn(ctx, fmt.Errorf("%s", line))
	}
	if text := in.Text(); text != "" {
		t.q.Workspace = &workspaceRecord{text, in.Files}
	}
	if t.c.tracker == nil {
		t.c.tracker = in.Track()
	}
	return t.c.tellInstructions(ctx, in)
}

// follow has the model told of directories below those of its instructions as soon as it works there: behind the results of the calls.
func (t *turn) follow(o *tool.Options) {
	k := t.c.tracker
	if k == nil || t.resumed != nil || t.q.Aside {
		return
	}
	var mu sync.Mutex
	var touched []string
	o.Touched = func(paths []string) {
		mu.Lock()
		defer mu.Unlock()
		touched = append(touched, paths...)
	}
	before := t.req.Notice
	t.req.Notice = func(ctx context.Context) string {
		mu.Lock()
		defer mu.Unlock()
		notice := k.Touch(touched)
		touched = nil
		if before != nil {
			notice = strings.TrimSpace(before(ctx) + "\n\n" + notice)
		}
		return notice
	}
}

// wantsWorkspace reports whether the question gets what the workspace says.
func (t *turn) wantsWorkspace() bool {
	c := t.c
	own := t.q.Settings.WorkspaceInstructions
	if c.agent != nil {
		own = cmp.Or(c.tuned.WorkspaceInstructions, c.agent.InForce.WorkspaceInstructions)
	}
	if wanted := cmp.Or(c.options.Workspace, own, c.service.Instruct); wanted != nil {
		return *wanted
	}
	return t.worksInFiles()
}

// worksInFiles reports whether the model of the question works in the workspace.
func (t *turn) worksInFiles() bool {
	return t.kit.Calling && t.calls && (t.c.agent != nil || t.seesFiles())
}

// seesFiles reports whether a tool of the question sees files of the workspace.
func (t *turn) seesFiles() bool {
	for name := range t.kit.Tools.All() {
		if strings.HasPrefix(name, "fs_") || strings.HasPrefix(name, "execute_") {
			return true
		}
	}
	return false
}

// tellInstructions emits which files the next question is asked with, if that is new to the conversation.
func (c *Conversation) tellInstructions(ctx context.Context, in workspace.Instructions) error {
	var body event.Instructions
	key := ""
	for _, f := range in.Files {
		line := f.Name + string(f.State) + f.Sum + "\n"
		body.Files = append(body.Files, event.InstructionFile{Path: f.Name, Bytes: f.Bytes, State: string(f.State), Changed: c.told != "" && !strings.Contains("\n"+c.told, "\n"+line)})
		key += line
	}
	if key == c.told {
		return nil
	}
	body.Changed = c.told != ""
	c.told = key
	return c.options.Events.Emit(ctx, body)
}
