package repl

import (
	"strconv"
	"strings"

	"loki/internal/base/text"
	"loki/internal/conversation"
	"loki/internal/frontend/repl/line"
	"loki/internal/llm/chat"
	"loki/internal/setup/config"
)

// The prompts of a configuration that says nothing.
const (
	leftPrompt = "{color.red}{model}){color.green}{?session {?agent {agent}>}{session}{?role /}}{!session {?agent {agent}>}}{role}" +
		"{?rag @{rag}}{?mode {color.yellow}[{mode}]}{color.cyan}{?session )}{!session >}{color.reset} "
	rightPrompt = "{color.purple}{?session {?consume_tokens {consume_tokens}({consume_percent}%)}{!consume_tokens {consume_tokens}}}{color.reset}"
)

// prompt returns the prompt for the next line.
func (r *repl) prompt() line.Prompt {
	st, cfg := r.conv.State(), r.app.Config
	r.highlight = st.Highlight
	return newPrompt(cfg, st, st.Highlight && r.display.OutColor())
}

// cycle changes between the modes ask and plan, and returns the prompt that shows it. Where neither can be, the prompt stays.
func (r *repl) cycle() line.Prompt {
	next := chat.ModePlan
	if r.conv.Mode() == chat.ModePlan {
		next = chat.ModeAsk
	}
	_ = r.conv.SetMode(next) // a graph has no modes
	return r.prompt()
}

// newPrompt returns the prompt that the configuration says, for what is in force.
func newPrompt(cfg *config.Config, st conversation.State, colored bool) line.Prompt {
	variables, colors := promptVariables(st, cfg.Wrap), promptColors()
	get := func(name string) string {
		if color, ok := strings.CutPrefix(name, "color."); ok {
			if n, ok := colors[color]; ok && colored {
				return "\x1b[" + strconv.Itoa(n) + "m"
			}
			return ""
		}
		return text.OneLine(variables[name], maxVariable)
	}
	left, right := leftPrompt, rightPrompt
	if cfg.LeftPrompt != nil {
		left = *cfg.LeftPrompt
	}
	if cfg.RightPrompt != nil {
		right = *cfg.RightPrompt
	}
	return line.Prompt{Left: expand(left, get), Right: expand(right, get)}
}

// maxVariable is how many characters of a variable are shown.
const maxVariable = 200

// promptVariables returns what prompt templates can name, colors aside. What is not in force is missing.
func promptVariables(st conversation.State, wrap config.Wrap) map[string]string {
	v := map[string]string{
		"model": st.Model, "client_name": st.Client, "model_name": st.ModelName, "max_input_tokens": strconv.Itoa(st.MaxInputTokens),
		"role": st.Role, "rag": st.Knowledge, "agent": st.Agent,
	}
	if st.Agent != "" {
		v["role"] = ""
	}
	if st.Mode != chat.ModeAsk {
		v["mode"] = string(st.Mode)
	}
	if wrap != "" {
		v["wrap"] = wrap.String()
	}
	for name, value := range map[string]*float64{"temperature": st.Temperature, "top_p": st.TopP} {
		if value != nil && *value != 0 {
			v[name] = strconv.FormatFloat(*value, 'f', -1, 64)
		}
	}
	for name, on := range map[string]bool{"dry_run": st.DryRun, "stream": st.Stream, "save": st.Save} {
		if on {
			v[name] = "true"
		}
	}
	if s := st.Session; s != nil {
		if !s.Unnamed {
			v["session"], v["session_autoname"], v["dirty"] = s.Name, s.Title, strconv.FormatBool(s.Dirty)
		}
		v["consume_tokens"], v["user_messages_len"] = strconv.Itoa(s.Tokens), strconv.Itoa(s.UserMessages)
		v["consume_percent"] = strconv.FormatFloat(s.Percent, 'f', -1, 64)
	}
	return v
}

// promptColors returns the numbers of the colors that prompts can name, as parameters of an SGR sequence.
func promptColors() map[string]int {
	return map[string]int{
		"reset": 0, "black": 30, "red": 31, "green": 32, "yellow": 33, "blue": 34, "purple": 35, "magenta": 35, "cyan": 36, "white": 37,
		"dark_gray": 90, "light_red": 91, "light_green": 92, "light_yellow": 93, "light_blue": 94, "light_purple": 95, "light_magenta": 95,
		"light_cyan": 96, "light_gray": 97,
	}
}
