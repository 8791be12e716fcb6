package script

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"loki/internal/base/process/environ"
	"loki/internal/base/text"
	"loki/internal/tool"
	"loki/internal/tool/script/argc"
)

// places are the files of one call.
type places struct {
	output    string // the result for the model
	arguments string // JSON for a launcher; empty for bash
}

// environ returns the environment of a call, and the lines of env files that bash has to
// evaluate. src is the script.
func (s *script) environ(call tool.Call, src []byte, f function, at places) (child environ.Child, lines []string, err error) {
	declared := s.o.Declared
	if !s.o.Withhold {
		declared = append(DeclaredVariables(src), declared...)
	}
	child = s.o.Policy.Child(s.o.Environ, declared...)
	set := s.constants()
	set["LLM_OUTPUT"] = s.path(at.output)
	unset := call.Identify(set)
	if at.arguments != "" {
		set["LLM_TOOL_DATA_FILE"] = at.arguments
	} else {
		unset = append(unset, "LLM_TOOL_DATA_FILE")
	}
	if s.o.Agent != nil {
		set["LLM_AGENT_FUNC"] = s.callName(f)
	}
	if s.o.Variables != nil {
		variables, err := s.o.Variables()
		if err != nil {
			return child, nil, err
		}
		for name, v := range variables {
			set[environ.AgentVariable(name)] = v
		}
	}
	if s.o.Executable != "" {
		set["LOKI_EXECUTABLE"] = s.path(s.o.Executable)
	}
	if environ.Get(child.Environ, "NO_COLOR") == "" {
		set["CLICOLOR_FORCE"], set["FORCE_COLOR"] = "1", "1"
	}
	if info, err := os.Stat(s.o.Bin); s.o.Bin != "" && err == nil && info.IsDir() {
		set["PATH"] = s.o.Bin
		if path := environ.Get(child.Environ, "PATH"); path != "" {
			set["PATH"] += string(os.PathListSeparator) + path
		}
	}
	filled, lines := s.envFile(child.Environ, set)
	maps.Copy(set, filled)
	child.Environ = environ.Merge(child.Environ, set, unset...)
	if s.o.Parent != nil {
		child.Environ = append(child.Environ, s.o.Parent())
	}
	return child, lines, nil
}

// declarations matches the variables that a script declares: by the tag @env, or as the
// default of an option or argument.
var declarations = text.Regexp(`(?m)^[ \t]*(?:#|//)[ \t]*@(?:env[ \t]+|(?:option|arg)[ \t]+(?:-\w[ \t]+)?[^\s$]+(?:[ \t]+<[^>\n]*>)*[ \t]+\$)([A-Za-z_]\w*)`)

// DeclaredVariables returns the names of the variables that a script declares.
func DeclaredVariables(src []byte) []string {
	var names []string
	for _, match := range declarations().FindAllSubmatch(src, -1) {
		names = append(names, string(match[1]))
	}
	return names
}

// constants returns the variables that are the same for all calls.
func (s *script) constants() map[string]string {
	set := map[string]string{"LLM_ROOT_DIR": s.path(s.o.Root)}
	if a := s.o.Agent; a != nil {
		set["LLM_AGENT_NAME"] = a.Name
		set["LLM_AGENT_ROOT_DIR"] = s.path(a.Dir)
		set["LLM_AGENT_CACHE_DIR"] = s.path(s.cacheDir())
	} else {
		set["LLM_TOOL_NAME"] = s.stem
		set["LLM_TOOL_CACHE_DIR"] = s.path(s.cacheDir())
	}
	if s.lang == bash && s.o.PromptUtils != "" {
		set["LLM_PROMPT_UTILS_FILE"] = s.path(s.o.PromptUtils)
	}
	return set
}

// cacheDir returns the directory that a script may use as its cache.
func (s *script) cacheDir() string {
	if a := s.o.Agent; a != nil {
		return a.CacheDir
	}
	return filepath.Join(s.o.Root, "cache", s.stem)
}

// callName returns the name under which a function of an agent's script is called.
func (s *script) callName(f function) string {
	if name := f.real(); name != "" {
		return name
	}
	return f.declared.Name
}

// path returns a path as the script can use it: bash on Windows wants slashes.
func (s *script) path(p string) string {
	if runtime.GOOS == "windows" && s.lang == bash {
		return filepath.ToSlash(p)
	}
	return p
}

// envFiles returns the files that complete the environment, the more important first: the one
// beside the script, which for an agent's script is that of the agent, and that of the root.
func (s *script) envFiles() []string {
	return []string{filepath.Join(filepath.Dir(s.file), ".env"), filepath.Join(s.o.Root, ".env")}
}

// maxEnvFile is how large an env file may be, in bytes.
const maxEnvFile = 1 << 20

// envFile returns the variables of env files that neither env nor set has.
func (s *script) envFile(env []string, set map[string]string) (filled map[string]string, lines []string) {
	filled = make(map[string]string)
	later := make(map[string]bool)
	files := s.envFiles()
	if s.o.Withhold {
		files = nil
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxEnvFile {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			key, v, ok := envLine(line)
			_, given := environ.Lookup(env, key)
			_, isSet := set[key]
			_, isFilled := filled[key]
			if !ok || later[key] || given || isSet || isFilled {
				continue
			}
			if s.lang == bash && needsShell(v) {
				later[key] = true
				lines = append(lines, "eval "+argc.Quote("export "+key+"="+v))
				continue
			}
			filled[key] = unquote(v)
		}
	}
	return filled, lines
}

// envLine returns the name and value in a line of an env file, quotes and all.
func envLine(line string) (key, v string, ok bool) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "#") || strings.ContainsRune(line, 0) {
		return "", "", false
	}
	key, v, ok = strings.Cut(line, "=")
	key = strings.TrimSpace(strings.TrimPrefix(key, "export "))
	name := strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
	return key, strings.TrimSpace(v), ok && key != "" && name && (key[0] < '0' || key[0] > '9')
}

// needsShell reports whether bash would expand a value.
func needsShell(v string) bool {
	single := len(v) > 1 && v[0] == '\'' && strings.IndexByte(v[1:], '\'') == len(v)-2
	return !single && strings.ContainsAny(v, "$`\\")
}

// unquote returns a value without one pair of quotes around it.
func unquote(v string) string {
	if len(v) > 1 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
		return v[1 : len(v)-1]
	}
	return v
}
