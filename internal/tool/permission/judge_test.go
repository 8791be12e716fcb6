package permission_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/value/yamldoc"
	"loki/internal/tool/permission"
)

// read reads rules from YAML.
func read(t testing.TB, source string) permission.Rules {
	t.Helper()
	doc, err := yamldoc.Parse("config.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	rules, ok := permission.Read(doc.Root())
	if !ok || doc.Err() != nil {
		t.Fatalf("%v", doc.Err())
	}
	return rules
}

func TestShellRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, rules, command, want string }{
		{"specific_beats_general", `execute_command: {"git *": allow, "rm *": deny, "*": ask}`, "git push", "allow"},
		{"order_does_not_matter", `execute_command: {"*": ask, "git *": allow}`, "git push", "allow"},
		{"general_question", `execute_command: {"git *": allow, "*": ask}`, "ls", "ask"},
		{"exception", `execute_command: {"git *": allow, "git push*": ask}`, "git push origin", "ask"},
		{"deny_beats_specific", `execute_command: {"git *": deny, "git status": allow}`, "git status", "deny"},
		{"every_command_counts", `execute_command: {"git *": allow}`, "git fetch && make", "ask"},
		{"all_allowed", `execute_command: {"git *": allow, "make": allow}`, "git fetch && make", "allow"},
		{"no_star_is_exact", `execute_command: {"make": allow}`, "make all", "ask"},
		{"attached_star", `execute_command: {"make*": allow}`, "make all", "allow"},
		{"prefix_of_another_program", `execute_command: {"*": allow, "git push:*": deny}`, "git push origin", "deny"},
		{"prefix_allows_only_what_it_says", `execute_command: {"git push:*": allow}`, "git push origin", "ask"},
		{"star_within", `execute_command: {"npm run test:*": allow}`, "npm run test:unit --watch", "allow"},
		{"other_program", `execute_command: {"git*": allow}`, "gitk", "allow"},
		{"star_in_the_middle", `execute_command: {"git * --force*": deny}`, "git push origin main --force", "deny"},
		{"unknown_word_may_be_denied", `execute_command: {"git push*": allow, "git * --force*": deny}`, "git push $X", "ask"},
		{"whole_tool", `execute_command: allow`, "anything > /etc/x; $X", "allow"},
		{"whole_tool_with_exception", `execute_command: {"*": allow, "rm *": deny}`, "make; rm x", "deny"},
		{"whole_tool_hides_nothing", `execute_command: {"*": allow, "rm *": deny}`, "$X y", "ask"},
		{"whole_tool_denied", `execute_command: deny`, "ls", "deny"},
		{"denied_by_an_argument", `{execute_command: allow, rules: [{tool: execute_command, action: deny, argument: {command: "*evil*"}}]}`, "make evil", "deny"},
		{"asked_by_an_argument", `{execute_command: allow, rules: [{tool: execute_command, action: ask, argument: {command: "*evil*"}}]}`, "make; evil", "ask"},
		{"other_argument", `{execute_command: allow, rules: [{tool: execute_command, action: deny, argument: {command: "*evil*"}}]}`, "make good", "allow"},
		{"not_allowed_by_an_argument", `rules: [{tool: execute_command, action: allow, argument: {command: "make*"}}]`, "make; evil", "ask"},
		{"tool_glob", `"execute*": deny`, "ls", "deny"},
		{"default_deny", `default: deny`, "make", "deny"},
		{"default_deny_harmless", `default: deny`, "ls", "allow"},
		{"default_allow", `default: allow`, "make > out", "allow"},
		{"default_allow_stays_inside", `default: allow`, "make > /etc/out", "ask"},
		{"default_allow_knows_what_it_does", `default: allow`, "$X", "ask"},
		{"write_by_path", "rules: [{tool: execute_command, action: allow, path: 'build/**'}]", "echo x > build/a/b", "allow"},
		{"write_elsewhere", "rules: [{tool: execute_command, action: allow, path: 'build/**'}]", "echo x > src/a", "ask"},
		{"write_around", "rules: [{tool: execute_command, action: allow, path: 'build/**'}]", "echo x > build/../a", "ask"},
		{"write_denied", "rules: [{tool: execute_command, action: deny, path: '*.env'}]", "echo x > a.env", "deny"},
		{"command_rule_is_not_for_files", `execute_command: {"echo *": allow}`, "echo x > y", "ask"},
		{"wildcard_does_not_reach_hooks", "rules: [{tool: execute_command, action: allow, path: '**'}]", "echo x > .git/hooks/pre-commit", "ask"},
		{"one_character_does_not_reach_hooks", "rules: [{tool: execute_command, action: allow, path: '?git/hooks/*'}]", "echo x > .git/hooks/pre-commit", "ask"},
		{"one_of_several", "rules: [{tool: execute_command, action: deny, path: '{b,c}.env'}]", "echo x > c.env", "deny"},
		{"hooks_by_name", "rules: [{tool: execute_command, action: allow, path: '.git/hooks/*'}]", "echo x > .git/hooks/pre-commit", "allow"},
		{"read_outside_by_path", "rules: [{tool: execute_command, action: allow, path: '/usr/include/**', access: read}]", "cat /usr/include/stdio.h", "allow"},
		{"read_is_not_write", "rules: [{tool: execute_command, action: allow, path: '/usr/include/**', access: read}]", "echo x > /usr/include/stdio.h", "ask"},
		{"sudo_by_name", `execute_command: {"sudo systemctl status *": allow}`, "sudo systemctl status x", "allow"},
		{"sudo_of_denied", `execute_command: {"sudo *": allow, "rm *": deny}`, "sudo rm x", "deny"},
		{"wrapped_allowed", `execute_command: {"make*": allow}`, "timeout 60 make test", "allow"},
		{"git_can_run_others", `execute_command: {"git *": allow}`, "git -c core.pager=./x log", "ask"},
		{"git_alias", `execute_command: {"git *": allow}`, "git config alias.x '!rm y'", "ask"},
		{"git_by_name", `execute_command: {"git -C * status": allow}`, "git -C sub status", "allow"},
		{"git_options_before_a_denied_command", `execute_command: {"git *": allow, "git push*": deny}`, "git --no-pager push", "deny"},
		{"git_values_before_a_denied_command", `execute_command: {"git *": allow, "git push*": deny}`, "git -C sub --git-dir=x -c a=b push origin", "deny"},
		{"git_asked_command", `execute_command: {"git *": allow, "git push*": ask}`, "git -P push", "ask"},
		{"git_option_of_an_allowed_command", `execute_command: {"git *": allow, "git push*": deny}`, "git --no-pager fetch push", "allow"},
		{"git_options_do_not_allow", `execute_command: {"git push*": allow}`, "git -c core.sshCommand=./x push", "ask"},
		{"tar_can_run_others", `execute_command: {"tar *": allow}`, "tar xf x --to-command=./y", "ask"},
		{"find_can_delete", `execute_command: {"find *": allow}`, "find . -delete", "ask"},
		{"find_runs_others", `execute_command: {"find *": allow}`, "find . -exec touch {} +", "ask"},
		{"make_variables", `execute_command: {"make *": allow}`, "make SHELL=./x", "ask"},
		{"denied_program_by_path", `execute_command: {"rm *": deny}`, "/opt/bin/rm x", "deny"},
		{"allowed_program_by_path", `execute_command: {"make": allow}`, "./make", "ask"},
		{"literals_count_and_stars_do_not", `execute_command: {"git push *": allow, "g* p* * *": ask}`, "git push a b", "allow"},
		{"stars_match_nothing", `execute_command: {"make * *": allow}`, "make", "allow"},
		{"unknown_words_may_be_several", `execute_command: {"git *": allow, "git push origin --force": deny}`, "git push $X", "ask"},
		{"value_that_is_not_known_may_be_several_words", `execute_command: {"git *": allow, "git push origin --force": deny}`, `x="$Y"; git push $x`, "ask"},
		{"ssh_of_harmless", `execute_command: {"ssh *": allow}`, "ssh host ls -l", "allow"},
		{"ssh_of_one_word", `execute_command: {"ssh *": allow}`, "ssh host reboot", "allow"},
		{"fd_of_denied", `execute_command: {"*": allow, "rm *": deny}`, "fd x --exec rm y", "deny"},
		{"fd_batch_of_denied", `execute_command: {"*": allow, "rm *": deny}`, "fd x --exec-batch rm y", "deny"},
		{"fd_short_of_denied", `execute_command: {"*": allow, "rm *": deny}`, "fd . -x rm y", "deny"},
		{"quoted_star_is_itself", `execute_command: {"make '*'": allow}`, "make '*'", "allow"},
		{"quoted_star_is_no_other_word", `execute_command: {"make '*'": allow}`, "make x", "ask"},
		{"unknown_end_of_a_word", `execute_command: {"make test*": allow}`, `make "test$X"`, "allow"},
		{"unknown_end_of_a_shorter_word", `execute_command: {"make test*": allow}`, `make "te$X"`, "ask"},
		{"unknown_end_of_a_word_with_more", `execute_command: {"make test*x*": allow}`, `make "test$X"`, "ask"},
		{"variables_change_commands", `execute_command: {"npm test*": allow}`, "NODE_OPTIONS=-r./x npm test", "ask"},
		{"harmless_variables", `execute_command: {"npm test*": allow}`, "CI=1 NODE_ENV=test npm test", "allow"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := judge(t, permission.Options{Root: project(t), Shell: "bash", Rules: read(t, tt.rules)})
			if v := j.Judge(shellCall(tt.command)); string(v.Action) != tt.want {
				t.Errorf("%s: %+v, want %s", tt.command, v, tt.want)
			}
		})
	}
}

func TestForeignShells(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Shell: "powershell", Rules: read(t, `execute_command: {"Get-ChildItem": allow, "Get-Content *": allow}`)})
	for command, want := range map[string]permission.Action{
		"Get-ChildItem": permission.Allow, "Get-ChildItem ; rm x": permission.Ask, "Get-Content x": permission.Ask, "ls": permission.Ask,
	} {
		if v := j.Judge(shellCall(command)); v.Action != want {
			t.Errorf("%s: %+v", command, v)
		}
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	root := project(t)
	outside := t.TempDir()
	config := filepath.Join(root, "config")
	if err := os.Mkdir(filepath.Join(root, "bare"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bare", "HEAD"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"out": outside, "dangling": filepath.Join(outside, "new"), "loop": "loop", "in": "sub"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Skip(err)
		}
	}
	for _, tt := range []struct {
		name, rules, tool, args string
		readOnly, destructive   bool
		want                    string
	}{
		{name: "read", tool: "fs_cat", args: `{"path":"a.txt"}`, readOnly: true, want: "allow"},
		{name: "read_outside", tool: "fs_cat", args: `{"path":"/etc/passwd"}`, readOnly: true, want: "ask"},
		{name: "read_up", tool: "fs_cat", args: `{"path":"sub/../../x"}`, readOnly: true, want: "ask"},
		{name: "read_home", tool: "fs_cat", args: `{"path":"~/x"}`, readOnly: true, want: "ask"},
		{name: "read_other_home", tool: "fs_cat", args: `{"path":"~root/x"}`, readOnly: true, want: "ask"},
		{name: "read_drive", tool: "fs_cat", args: `{"path":"C:\\x"}`, readOnly: true, want: "ask"},
		{name: "read_drive_with_slash", tool: "fs_cat", args: `{"path":"C:/x"}`, readOnly: true, want: "ask"},
		{name: "read_drive_alone", tool: "fs_cat", args: `{"path":"C:"}`, readOnly: true, want: "ask"},
		{name: "read_name_with_colon", tool: "fs_cat", args: `{"path":"a:b.txt"}`, readOnly: true, want: "allow"},
		{name: "read_home_by_rule", rules: `fs_cat: {"~/docs/**": allow}`, tool: "fs_cat", args: `{"path":"~/docs/x"}`, readOnly: true, want: "allow"},
		{name: "read_share", tool: "fs_cat", args: `{"path":"\\\\host\\x"}`, readOnly: true, want: "ask"},
		{name: "link_out", tool: "fs_cat", args: `{"path":"out/x"}`, readOnly: true, want: "ask"},
		{name: "link_in", tool: "fs_cat", args: `{"path":"in/b.txt"}`, readOnly: true, want: "allow"},
		{name: "link_dangling", tool: "fs_write", args: `{"path":"dangling"}`, want: "ask"},
		{name: "link_loop", tool: "fs_cat", args: `{"path":"loop"}`, readOnly: true, want: "ask"},
		{name: "link_then_up", tool: "fs_cat", args: `{"path":"out/../x"}`, readOnly: true, want: "ask"},
		{name: "glob_up", tool: "fs_glob", args: `{"pattern":"../**"}`, readOnly: true, want: "ask"},
		{name: "tool_over_fallback", rules: "execute_command: allow\n\"*\": ask", tool: "execute_command", args: `{"command":"touch x"}`, want: "allow"},
		{name: "command_over_tool", rules: "rules: [{tool: \"*\", action: ask, command: \"rm *\"}, {tool: execute_command, action: allow}]", tool: "execute_command", args: `{"command":"rm x"}`, want: "ask"},
		{name: "fallback_over_none", rules: "\"*\": ask\nfs_write: allow", tool: "execute_command", args: `{"command":"touch x"}`, want: "ask"},
		{name: "write", tool: "fs_write", args: `{"path":"a.txt"}`, want: "allow"},
		{name: "write_an_option", rules: "fs_write: allow", tool: "fs_write", args: `{"path":"--files0-from=/etc/passwd"}`, want: "ask"},
		{name: "write_an_option_below", tool: "fs_write", args: `{"path":"sub/-f/x"}`, want: "ask"},
		{name: "write_a_list_of_options", tool: "fs_write", args: `{"path":"@/etc/passwd"}`, want: "ask"},
		{name: "write_a_scope", tool: "fs_write", args: `{"path":"types/@scope/x-y.ts"}`, want: "allow"},
		{name: "write_destructive", tool: "fs_rm", args: `{"path":"a.txt"}`, destructive: true, want: "ask"},
		{name: "write_by_rule", rules: "fs_rm: allow", tool: "fs_rm", args: `{"path":"a.txt"}`, destructive: true, want: "allow"},
		{name: "rule_stays_inside", rules: "fs_rm: allow", tool: "fs_rm", args: `{"path":"/etc/passwd"}`, destructive: true, want: "ask"},
		{name: "rule_with_path", rules: `fs_rm: {"/tmp/x/**": allow}`, tool: "fs_rm", args: `{"path":"/tmp/x/y"}`, destructive: true, want: "allow"},
		{name: "rule_to_read", rules: "rules: [{tool: fs_cat, action: allow, path: '/tmp/x/**', access: read}]", tool: "fs_cat", args: `{"path":"/tmp/x/y"}`, readOnly: true, want: "allow"},
		{name: "rule_to_write_is_not_to_read", rules: "rules: [{tool: fs_cat, action: allow, path: '/tmp/x/**', access: write}]", tool: "fs_cat", args: `{"path":"/tmp/x/y"}`, readOnly: true, want: "ask"},
		{name: "rule_covers_all_paths", rules: `fs_mv: {"/tmp/x/**": allow}`, tool: "fs_mv", args: `{"source":"/tmp/x/a","destination":"/tmp/x/b"}`, destructive: true, want: "allow"},
		{name: "rule_covers_one_of_two_paths", rules: `fs_mv: {"/tmp/x/**": allow}`, tool: "fs_mv", args: `{"source":"/tmp/x/a","destination":"/tmp/y/b"}`, destructive: true, want: "ask"},
		{name: "rule_denies_one_of_two_paths", rules: `fs_mv: {"/tmp/x/**": deny}`, tool: "fs_mv", args: `{"source":"/tmp/y/a","destination":"/tmp/x/b"}`, destructive: true, want: "deny"},
		{name: "hooks", rules: "fs_write: allow", tool: "fs_write", args: `{"path":".git/hooks/x"}`, want: "ask"},
		{name: "makes_a_repository", tool: "fs_write", args: `{"path":"docs/HEAD"}`, want: "ask"},
		{name: "makes_a_repository_with_settings_elsewhere", tool: "fs_write", args: `{"path":"docs/commondir"}`, want: "ask"},
		{name: "in_a_repository_of_another_name", tool: "fs_write", args: `{"path":"bare/config"}`, want: "ask"},
		{name: "hooks_in_other_case", tool: "fs_write", args: `{"path":".GIT/hooks/x"}`, want: "ask"},
		{name: "protected", rules: "fs_write: allow", tool: "fs_write", args: `{"path":"config/permissions.yaml"}`, want: "ask"},
		{name: "path_denied", rules: `fs_cat: {"**/*.env": deny}`, tool: "fs_cat", args: `{"path":"sub/.env"}`, readOnly: true, want: "deny"},
		{name: "argument", rules: "rules: [{tool: send_mail, action: allow, argument: {recipient: '*@example.com'}}]", tool: "send_mail", args: `{"recipient":"a@example.com"}`, destructive: true, want: "allow"},
		{name: "argument_differs", rules: "rules: [{tool: send_mail, action: allow, argument: {recipient: '*@example.com'}}]", tool: "send_mail", args: `{"recipient":"a@example.org"}`, destructive: true, want: "ask"},
		{name: "argument_of_other_type", rules: "rules: [{tool: send_mail, action: allow, argument: {recipient: '*'}}]", tool: "send_mail", args: `{"recipient":["a"]}`, destructive: true, want: "ask"},
		{name: "mcp", tool: "mcp__github__list", args: `{}`, readOnly: true, want: "ask"},
		{name: "mcp_trusted", rules: "trust: github", tool: "mcp__github__list", args: `{}`, readOnly: true, want: "allow"},
		{name: "mcp_by_name", rules: `"mcp__github__*": allow`, tool: "mcp__github__list", args: `{}`, want: "allow"},
		{name: "mcp_other_server", rules: `"mcp__github__*": allow`, tool: "mcp__git__list", args: `{}`, want: "ask"},
		{name: "mcp_invoke", rules: `"mcp__github__list": allow`, tool: "mcp__invoke_github", args: `{"tool":"list"}`, want: "allow"},
		{name: "mcp_invoke_denied", rules: `{"mcp__invoke_github": allow, "mcp__github__drop": deny}`, tool: "mcp__invoke_github", args: `{"tool":"drop"}`, want: "deny"},
		{name: "mcp_server_denied", rules: `{"mcp__*": allow, "mcp__github": deny}`, tool: "mcp__invoke_github", args: `{"tool":"list"}`, want: "deny"},
		{name: "mcp_server_denied_direct", rules: `{"mcp__*": allow, "mcp__github": deny}`, tool: "mcp__github__list", args: `{}`, want: "deny"},
		{name: "mcp_server_with_a_rule_for_its_search", rules: `{"mcp__search_github": deny}`, tool: "mcp__search_github", args: `{"query":"x"}`, want: "deny"},
		{name: "mcp_search", tool: "mcp__search_github", args: `{"query":"x"}`, readOnly: true, want: "allow"},
		{name: "mcp_resources", tool: "mcp__resources_github", args: `{}`, readOnly: true, want: "ask"},
		{name: "mcp_resources_trusted", rules: "trust: github", tool: "mcp__resources_github", args: `{}`, readOnly: true, want: "allow"},
		{name: "mcp_direct_like_resources", rules: "trust: x", tool: "mcp__resources_x__safe", args: `{}`, readOnly: true, want: "ask"},
		{name: "mcp_direct_like_search", tool: "mcp__search_x__safe", args: `{}`, readOnly: true, want: "ask"},
		{name: "mcp_direct_like_describe", tool: "mcp__describe_x__safe", args: `{}`, readOnly: true, want: "ask"},
		{name: "mcp_direct_like_invoke", rules: `"mcp__x__drop": allow`, tool: "mcp__invoke_x__safe", args: `{"tool":"drop"}`, want: "ask"},
		{name: "mcp_server_called_search", tool: "mcp__search__safe", args: `{}`, readOnly: true, want: "ask"},
		{name: "mcp_server_called_search_trusted", rules: "trust: search", tool: "mcp__search__safe", args: `{}`, readOnly: true, want: "allow"},
		{name: "default_deny", rules: "deny", tool: "fs_write", args: `{"path":"a"}`, want: "deny"},
		{name: "name_in_other_case", tool: "fs_cat", args: `{"PATH":"/etc/passwd"}`, readOnly: true, want: "ask"},
		{name: "name_with_kelvin_sign", rules: "{token: allow}", tool: "token", args: `{"file_path":"a.txt","to\u212Aen":"x"}`, want: "allow"},
		{name: "name_in_two_cases", tool: "fs_cat", args: `{"path":"a.txt","PATH":"/etc/passwd"}`, readOnly: true, want: "deny"},
		{name: "name_twice", rules: "fs_cat: allow", tool: "fs_cat", args: `{"path":"a.txt","path":"/etc/passwd"}`, readOnly: true, want: "deny"},
		{name: "name_twice_escaped", tool: "fs_cat", args: `{"path":"a.txt","p\u0061th":"/etc/passwd"}`, readOnly: true, want: "deny"},
		{name: "name_twice_within", tool: "fs_cat", args: `{"path":"a.txt","x":[{"a":1,"a":2}]}`, readOnly: true, want: "deny"},
		{name: "name_again_elsewhere", tool: "fs_cat", args: `{"path":"a.txt","x":[{"a":1},{"a":2}],"a":3}`, readOnly: true, want: "allow"},
		{name: "long_s_in_a_name", tool: "fs_cat", args: `{"path\u017F":["/etc/passwd"]}`, readOnly: true, want: "ask"},
		{name: "names_of_server_tools_are_exact", rules: `"mcp__s__get": allow`, tool: "mcp__s__get", args: `{"id":1,"ID":2}`, want: "allow"},
		{name: "names_of_invoked_tools_are_exact", rules: `"mcp__s__get": allow`, tool: "mcp__invoke_s", args: `{"tool":"get","arguments":{"id":1,"ID":2}}`, want: "allow"},
		{name: "rule_on_either_name", rules: `{"mcp__s__get": allow, rules: [{tool: mcp__s__get, action: deny, argument: {id: "2"}}]}`, tool: "mcp__s__get", args: `{"id":"1","ID":"2"}`, want: "deny"},
		{name: "names_of_own_tools", rules: `fs_cat: allow`, tool: "fs_cat", args: `{"path":"a","Path":"b"}`, want: "deny"},
		{name: "denied_path_in_other_case", rules: `fs_cat: {"**/*.env": deny}`, tool: "fs_cat", args: `{"Path":"sub/.env"}`, readOnly: true, want: "deny"},
		{name: "allowed_argument_in_other_case", rules: "rules: [{tool: send_mail, action: allow, argument: {recipient: '*@example.com'}}]", tool: "send_mail", args: `{"Recipient":"a@example.com"}`, destructive: true, want: "ask"},
		{name: "denied_argument_in_other_case", rules: "rules: [{tool: send_mail, action: deny, argument: {recipient: '*@example.com'}}]", tool: "send_mail", args: `{"Recipient":"a@example.com"}`, destructive: true, want: "deny"},
		{name: "one_of_several_recipients", rules: "rules: [{tool: send_mail, action: allow, argument: {recipient: '*@example.com'}}]", tool: "send_mail", args: `{"recipient":"evil@evil.com, a@example.com"}`, destructive: true, want: "ask"},
		{name: "all_recipients", rules: "rules: [{tool: send_mail, action: allow, argument: {recipient: '*@example.com'}}]", tool: "send_mail", args: `{"recipient":"b@example.com, a@example.com"}`, destructive: true, want: "allow"},
		{name: "mcp_invoke_in_two_cases", rules: `{"mcp__s__safe": allow, "mcp__s__drop": deny}`, tool: "mcp__invoke_s", args: `{"tool":"safe","Tool":"drop"}`, want: "deny"},
		{name: "mcp_invoke_in_other_case", rules: `{"mcp__invoke_s": allow, "mcp__s__drop": deny}`, tool: "mcp__invoke_s", args: `{"Tool":"drop"}`, want: "deny"},
		{name: "mcp_invoke_inner_argument", rules: "rules: [{tool: mcp__s__write, action: allow, argument: {repo: 'me/*'}}]", tool: "mcp__invoke_s", args: `{"tool":"write","arguments":{"repo":"me/x"}}`, want: "allow"},
		{name: "mcp_invoke_outer_argument", rules: "rules: [{tool: mcp__s__write, action: allow, argument: {repo: 'me/*'}}]", tool: "mcp__invoke_s", args: `{"tool":"write","repo":"me/x","arguments":{"repo":"prod/x"}}`, want: "ask"},
		{name: "mcp_invoke_denied_path", rules: `{"mcp__s__*": allow, "rules": [{tool: "mcp__s__*", action: deny, path: "~/**"}]}`, tool: "mcp__invoke_s", args: `{"tool":"write","arguments":{"path":"/home/user/x"}}`, want: "deny"},
		{name: "not_json", tool: "fs_rm", args: `{`, destructive: true, want: "ask"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := judge(t, permission.Options{Root: root, Home: "/home/user", Protected: []string{config}, Rules: read(t, tt.rules)})
			v := j.Judge(permission.Call{Tool: tt.tool, Arguments: json.RawMessage(tt.args), ReadOnly: tt.readOnly, Destructive: tt.destructive})
			if string(v.Action) != tt.want || v.Action != permission.Allow && v.Reason == "" {
				t.Errorf("%+v, want %s", v, tt.want)
			}
		})
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	root, file := project(t), filepath.Join(t.TempDir(), "config", "permissions.yaml")
	for _, tt := range []struct{ command, grant, like, unlike string }{
		{"git commit -m 'a message'", "exactly git commit -m 'a message'", " git commit -m 'a message'\n", "git commit -m another"},
		{"git add . && make", "exactly git add . && make", "git add . && make", "make"},
		{"echo x > out", "exactly echo x > out", "echo x > out", "echo y > out"},
		{"$X y", "exactly $X y", "$X y", "$X z"},
	} {
		t.Run(strings.ReplaceAll(tt.command, "/", "_"), func(t *testing.T) {
			j := judge(t, permission.Options{Root: root, Shell: "bash", Memory: permission.NewMemory(""), Rules: read(t, `execute_command: {"rm *": deny}`)})
			v := j.Judge(shellCall(tt.command))
			var texts []string
			for _, g := range v.Always {
				texts = append(texts, g.String())
			}
			if got := strings.Join(texts, ", "); v.Action != permission.Ask || got != tt.grant {
				t.Fatalf("%+v, want %s", v, tt.grant)
			}
			if err := j.Remember(t.Context(), permission.Session, v.Always); err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{tt.command, tt.like} {
				if v := j.Judge(shellCall(command)); v.Action != permission.Allow {
					t.Errorf("%s: %+v", command, v)
				}
			}
			if v := j.Judge(shellCall(tt.unlike)); v.Action == permission.Allow {
				t.Errorf("%s: %+v", tt.unlike, v)
			}
		})
	}

	m := permission.NewMemory("") // with a pattern, which no answer grants
	if err := m.Add(t.Context(), permission.Session, "", []permission.Grant{{Tool: "execute_command", Command: "git commit *"}}); err != nil {
		t.Fatal(err)
	}
	if v := judge(t, permission.Options{Root: root, Shell: "bash", Memory: m}).Judge(shellCall("git commit -m x")); v.Action != permission.Allow {
		t.Errorf("%+v", v)
	}
	grants := []permission.Grant{{Tool: "execute_command", Command: `git commit "*`}, {Tool: "fs_rm", Path: "/x", Access: permission.Writing}, {Tool: "execute_command", Text: "a\n'b'"}}
	if err := permission.NewMemory(file).Add(t.Context(), permission.Agent, "coder", grants); err != nil {
		t.Fatal(err)
	}
	again := permission.NewMemory(file)
	if err := again.Add(t.Context(), permission.Agent, "other", grants[:1]); err != nil {
		t.Fatal(err)
	}
	got := permission.NewMemory(file).Grants("coder")
	if len(got) != len(grants) || got[0] != grants[0] || got[1] != grants[1] || got[2] != grants[2] {
		t.Errorf("got %+v", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if len(permission.NewMemory(file).Grants("")) != 0 {
		t.Error("grants of an agent hold for everybody")
	}
	for _, broken := range []string{"agents: [", "agents: {a: [{tool: x, comand: y}]}", "agents: {a: [{command: y}]}", "agents: {a: [{tool: x, access: all}]}"} {
		if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		m := permission.NewMemory(file)
		if m.Err() == nil || len(m.Grants("a")) != 0 || m.Add(t.Context(), permission.Agent, "a", grants) == nil {
			t.Errorf("%s: accepted", broken)
		}
		if kept, err := os.ReadFile(file); err != nil || string(kept) != broken {
			t.Errorf("%s: destroyed: %s, %v", broken, kept, err)
		}
	}
}

// TestGrantsWithoutAFile hold as long as the memory does.
func TestGrantsWithoutAFile(t *testing.T) {
	t.Parallel()
	m, grant := permission.NewMemory(""), permission.Grant{Tool: "fs_rm"}
	if err := m.Add(t.Context(), permission.Agent, "coder", []permission.Grant{grant}); err != nil {
		t.Fatal(err)
	}
	if got := m.Grants("coder"); len(got) != 1 || got[0] != grant || len(m.Grants("other")) != 0 {
		t.Errorf("grants %v, of another agent %v", got, m.Grants("other"))
	}
}

// TestGrantsThatCannotBeWrittenLeaveNothingBehind: the name of the file ends with a slash,
// so it is a directory that cannot be replaced.
func TestGrantsThatCannotBeWrittenLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := permission.NewMemory(dir+"/x/").Add(t.Context(), permission.Agent, "coder", []permission.Grant{{Tool: "fs_rm"}}); err == nil {
		t.Error("a directory was replaced")
	}
	if left, err := os.ReadDir(filepath.Join(dir, "x")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestGrantsForTools holds what is offered to be granted for tools that are no shell.
func TestGrantsForTools(t *testing.T) {
	t.Parallel()
	root, outside := project(t), resolved(t, t.TempDir())
	for _, tt := range []struct{ name, rules, tool, args, want string }{
		{"the_tool", "", "fs_rm", `{"path":"a.txt"}`, "[{fs_rm    }]"},
		{"one_file_outside", "", "fs_rm", `{"path":"` + outside + `/x"}`, "[{fs_rm   " + outside + "/x write}]"},
		{"files_in_and_outside", "", "fs_mv", `{"source":"a.txt","destination":"` + outside + `/x"}`, "[{fs_mv   " + resolved(t, root) + "/a.txt write} {fs_mv   " + outside + "/x write}]"},
		{"one_that_is_guarded", "", "fs_rm", `{"path":".git/hooks/x"}`, "[{fs_rm   " + resolved(t, root) + "/.git/hooks/x write}]"},
		{"a_name_that_would_be_a_pattern", "", "fs_rm", `{"path":"` + outside + `/*"}`, "[{fs_rm   " + outside + "/* write}]"},
		{"a_place_that_is_not_known", "", "fs_rm", `{"path":"~root/x"}`, "[]"},
		{"allowed", "fs_rm: allow", "fs_rm", `{"path":"a.txt"}`, "[]"},
		{"denied", "fs_rm: deny", "fs_rm", `{"path":"a.txt"}`, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := judge(t, permission.Options{Root: root, Memory: permission.NewMemory(""), Rules: read(t, tt.rules)})
			v := j.Judge(permission.Call{Tool: tt.tool, Arguments: json.RawMessage(tt.args), Destructive: true})
			got := "["
			for i, g := range v.Always {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprintf("{%s %s %s %s %s}", g.Tool, g.Command, g.Text, g.Path, g.Access)
			}
			if got += "]"; got != tt.want {
				t.Errorf("%+v, want %s", v, tt.want)
			}
		})
	}
}

// TestReasons holds what a person reads of a shell text that is asked about.
func TestReasons(t *testing.T) {
	t.Parallel()
	long := "make " + strings.Repeat("x", 195)
	const eight = "a1; b2; c3; d4; e5; f6; g7; h8"
	for _, tt := range []struct{ name, shell, text, want string }{
		{"one", "bash", "a1", "no rule allows a1"},
		{"six", "bash", eight[:4*6-2], "no rule allows a1; no rule allows b2; no rule allows c3; no rule allows d4; no rule allows e5; no rule allows f6"},
		{"seven", "bash", eight[:4*7-2], "no rule allows a1; no rule allows b2; no rule allows c3; no rule allows d4; no rule allows e5; no rule allows f6; and 1 more"},
		{"not_too_long", "bash", long, "no rule allows " + long},
		{"too_long", "bash", long + "x", "no rule allows " + long + "..."},
		{"of_one_language", "sh", "a1; [[ $x -gt 1 ]]", "a comparison of values that are not known to be numbers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := judge(t, permission.Options{Root: project(t), Shell: tt.shell})
			if v := j.Judge(shellCall(tt.text)); v.Action != permission.Ask || v.Reason != tt.want {
				t.Errorf("%s: %+v, want %s", tt.text, v, tt.want)
			}
		})
	}
}

// TestVerdictsNameTheRule, with the place it is from if that is known.
func TestVerdictsNameTheRule(t *testing.T) {
	t.Parallel()
	rules := read(t, `execute_command: {"rm *": deny, "make": allow}`)
	unplaced := permission.Rules{List: []permission.Rule{{Tool: "execute_command", Action: permission.Deny, Commands: []string{"rm *"}}}}
	for _, tt := range []struct {
		name, text, want string
		rules            permission.Rules
	}{
		{"denied", "rm x", `deny execute_command "rm *" (line 1)`, rules},
		{"denied_from_nowhere", "rm x", `deny execute_command "rm *"`, unplaced},
		{"allowed", "make", `allow execute_command "make" (line 1)`, rules},
		{"allowed_in_a_wrapper", "timeout 60 make", `allow execute_command "make" (line 1)`, rules},
		{"allowed_beside_harmless", "ls && make", `allow execute_command "make" (line 1)`, rules},
		{"allowed_as_a_whole", "git status", "allow execute_command (line 1)", read(t, "execute_command: allow")},
		{"harmless", "ls", "", rules},
		{"asked", "touch x", "", rules},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := judge(t, permission.Options{Root: project(t), Shell: "bash", Rules: tt.rules}).Judge(shellCall(tt.text))
			if v.Rule != tt.want {
				t.Errorf("%+v, want rule %s", v, tt.want)
			}
		})
	}
}

// TestIncompleteCommands are analysed like any other, without an internal error.
func TestIncompleteCommands(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Shell: "bash", Rules: permission.Rules{List: corpusRules}})
	for _, text := range []string{
		"git", "git -C", "git --no-pager", "git config", "sed", "sed -e", "awk", "awk -F", "awk -F:", "awk -v", "grep", "grep -A", "grep -e", "sort -t", "env", "env -u",
		"printf", "command", "command -v", "exec", "eval", "test", "[", "read", "read -r", "read -d", "set", "set -o", "go", "go env", "cd", "cd --", "trap", "trap --", "trap --  x",
		"find", "find -type", "find . -type", "find -exec", "find . -exec {}", `find . -exec \;`, "fd -x", "xargs", "xargs -I", "xargs -n", "timeout", "timeout -k", "timeout 5", "nice -n", "sudo", "sudo -u", "bash", "bash -c", "bash -o",
		"ssh", "ssh x", "su -c", "date -d", "uniq", "jq", "make", "tar", "npm run", "docker", "chroot", "flock", "watch", "parallel", "export", "wait", "exit", "return", "basename",
	} {
		if v := j.Judge(shellCall(text)); v.Action == permission.Deny || strings.Contains(v.Reason, "could not be analysed") {
			t.Errorf("%s: %+v", text, v)
		}
	}
}

// TestLimits judges texts at the limits of the analysis, and one step beyond, beside a rule that they might hide.
func TestLimits(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Shell: "bash", Sandboxed: true, Rules: permission.Rules{List: corpusRules}})
	cds := func(n int) string {
		text := ""
		for i := range n {
			text += fmt.Sprintf("cd d%d;", i)
		}
		return text
	}
	for _, tt := range []struct{ name, text, asked string }{
		{"text", "echo " + strings.Repeat("x", 64<<10-5), ""},
		{"longer_text", "echo " + strings.Repeat("x", 64<<10-4), "too long"},
		{"nested", strings.Repeat("eval ", 8) + "ls", ""},
		{"nested_deeper", strings.Repeat("eval ", 9) + "ls", "too many commands within commands"},
		{"commands", strings.Repeat("ls;", 1000), ""},
		{"more_commands", strings.Repeat("ls;", 1001), "too many commands"},
		{"wrappers", strings.Repeat("nice ", 8) + "ls", ""},
		{"more_wrappers", strings.Repeat("nice ", 9) + "ls", "too many commands within commands"},
		{"directories", cds(4), ""},
		{"more_directories", cds(6), "not known"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := j.Judge(shellCall(tt.text))
			if tt.asked == "" && v.Action != permission.Allow || tt.asked != "" && (v.Action != permission.Ask || !strings.Contains(v.Reason, tt.asked)) {
				t.Errorf("%s: %s, want %q", v.Action, v.Reason, tt.asked)
			}
		})
	}
}

// TestHome: ~ and what is below it are compared with rules as the directory they stand for.
func TestHome(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{"make /home/user": "make ~", "make /home/user/": "make ~/", "make /home/user/x": "make ~/x"} {
		j := judge(t, permission.Options{Root: project(t), Home: "/home/user", Shell: "bash", Rules: read(t, `execute_command: {"`+rule+`": allow}`)})
		for _, text := range []string{"make ~", "make ~/", "make ~/x", "make ~root", "make ~root/x"} {
			if v := j.Judge(shellCall(text)); (v.Action == permission.Allow) != (text == want) {
				t.Errorf("rule %s: %s: %+v", rule, text, v)
			}
		}
	}
}

// TestZsh holds what means more in zsh than in other shells.
func TestZsh(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Shell: "zsh", Sandboxed: true, Rules: permission.Rules{List: corpusRules}})
	for text, want := range map[string]permission.Action{
		"=rm x": permission.Ask, "echo a=ls": permission.Allow, "echo = x": permission.Allow, "ls <a.txt": permission.Allow, "echo *(e:'rm x':)": permission.Ask,
		"aliases[ls]=rm; ls": permission.Ask, "echo 'a#b'": permission.Allow,
	} {
		if v := j.Judge(shellCall(text)); v.Action != want {
			t.Errorf("%s: %+v, want %s", text, v, want)
		}
	}
}

func resolved(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func TestReadProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ source, want string }{
		{"fs_rm: alow", `config.yaml:1:8: fs_rm: the string "alow" is not one of allow, ask, deny; did you mean allow?`},
		{"default: yes", "default"},
		{"unattended: wait", "not one of deny, allow, suspend"},
		{"rules: [{tool: x}]", "action"},
		{"rules: [{action: deny}]", "tool"},
		{"rules: [{tool: x, action: deny, comand: y}]", "unknown key comand; did you mean command?"},
		{"rules: [{tool: x, action: deny, zzz: y}]", "unknown key zzz\n"},
		{"unattended: zzz", `the string "zzz" is not one of deny, allow, suspend` + "\n"},
		{"rules: [{tool: x, action: deny, command: []}]", "empty"},
		{"rules: [{tool: x, action: deny, command: a, path: b}]", "either command or path"},
		{"rules: [{tool: x, action: deny, access: read}]", "needs a path"},
		{"rules: {tool: x}", "rules"},
		{`execute_command: {"ls; rm *": allow}`, "for one command"},
		{`execute_command: {"": allow}`, "empty"},
		{`fs_rm: {"[": allow}`, "cannot be read"},
		{`fs_rm: {"../x": allow}`, "holds .."},
		{`"fs_*": {"x": allow}`, "takes an action only"},
		{`send_mail: {"*@x.com": deny}`, "takes an action only"},
		{`fetch_url_via_curl: {"http://x.com/": deny}`, "is not the name of a host"},
		{`execute_command: {"curl:*": deny}`, `the pattern "curl:*" is written as in another program; write "curl *"`},
		{`rules: [{tool: execute_command, action: deny, command: "Bash(git push:*)"}]`, `write "git push *"`},
		{`rules: [{tool: execute_command, action: deny, command: "Bash(rm *)"}]`, `write "rm *"`},
		{`"Bash(curl *)": deny`, `Bash(curl *) is a rule of another program; write its pattern below the tool: execute_command: {"curl *": ACTION}`},
		{`"Read(./.env)": deny`, `fs_cat: {"./.env": ACTION}`},
		{`{allow: ["Bash(npm run lint)"]}`, "allow is a setting of another program"},
		{`defaultMode: acceptEdits`, "is a setting of another program"},
		{"fs_rm: 1", "fs_rm"},
		{"[allow]", "list"},
	} {
		doc, err := yamldoc.Parse("config.yaml", []byte(tt.source))
		if err != nil {
			t.Fatal(err)
		}
		_, ok := permission.Read(doc.Root())
		texts := ""
		for _, p := range doc.Errors() {
			texts += p.Text() + "\n"
		}
		if ok || !strings.Contains(texts, tt.want) {
			t.Errorf("%s: ok %v, %s; want %s", tt.source, ok, texts, tt.want)
		}
	}
}

// What is allowed as harmless is run here, and must not change the directory it runs in.
func TestHarmlessCommandsWriteNothing(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	texts, _ := corpus(t, "harmless.txt")
	root := project(t)
	j := judge(t, permission.Options{Root: root, Home: root, Shell: "bash"})
	before := snapshot(t, root)
	var script strings.Builder
	for _, text := range texts {
		// git and go have caches of their own outside; here they would only be slow.
		if v := j.Judge(shellCall(text)); v.Action == permission.Allow && !strings.Contains(text, "git") && !strings.Contains(text, "version") && !strings.HasPrefix(text, "go ") {
			script.WriteString("(\n" + text + "\n)\n")
		}
	}
	cmd := exec.CommandContext(t.Context(), bash, "-c", script.String())
	cmd.Dir = root
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root}
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), "hello") {
		t.Fatalf("nothing was run: %v: %s", err, out)
	}
	if after := snapshot(t, root); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// snapshot lists the files of a directory with what is in them.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(path)
		if !d.IsDir() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.Write(data)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Judging never panics, and a text that is allowed is not when a denied command follows.
func FuzzJudge(f *testing.F) {
	for _, list := range []string{"bypass.txt", "harmless.txt"} {
		texts, _ := corpus(f, list)
		for _, text := range texts {
			f.Add(text)
		}
	}
	root := project(f)
	var judges []*permission.Judge
	for _, shell := range []string{"bash", "sh", "zsh", "ksh"} {
		judges = append(judges, judge(f, permission.Options{Root: root, Home: "/home/user", Shell: shell, Rules: permission.Rules{List: corpusRules}}))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, j := range judges {
			v := j.Judge(shellCall(text))
			if strings.Contains(v.Reason, "could not be analysed") {
				t.Fatalf("panic in %q", text)
			}
			if v.Action != permission.Allow || strings.TrimSpace(text) == "" {
				continue
			}
			if v := j.Judge(shellCall(text + "\nrm -rf x")); v.Action == permission.Allow {
				t.Fatalf("%q with a denied command is allowed", text)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add(`execute_command: {"git *": allow}`)
	f.Add("rules: [{tool: x, action: deny, path: [a, b], access: read, argument: {a: b}}]")
	f.Add("default: ask\nunattended: suspend\ntrust: [a]\nkeep_env: X")
	root := project(f)
	f.Fuzz(func(t *testing.T, source string) {
		doc, err := yamldoc.Parse("", []byte(source))
		if err != nil {
			return
		}
		rules, ok := permission.Read(doc.Root())
		if ok != (doc.Err() == nil) {
			t.Fatalf("ok %v, but %v", ok, doc.Err())
		}
		if ok {
			j := judge(t, permission.Options{Root: root, Rules: rules})
			if v := j.Judge(shellCall("git status")); v.Action == "" {
				t.Fatalf("%+v", v)
			}
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	j := judge(b, permission.Options{Root: project(b), Home: "/home/user", Shell: "bash", Rules: permission.Rules{List: corpusRules}})
	for name, text := range map[string]string{
		"ls": "ls -la", "pipe": "cat a.txt | grep foo | sort | uniq -c", "git": "git commit -m 'a message' && git push", "loop": `for f in *.txt; do echo "$f"; done`,
	} {
		call := shellCall(text)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				j.Judge(call)
			}
		})
	}
}

// TestGrantsBehindALink has the file of grants where the user keeps the files of all programs.
func TestGrantsBehindALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "dotfiles.yaml"), filepath.Join(dir, "permissions.yaml")
	if err := os.WriteFile(target, []byte("agents: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Base(target), link); err != nil {
		t.Skip(err)
	}
	grant := permission.Grant{Tool: "fs_rm"}
	if err := permission.NewMemory(link).Add(t.Context(), permission.Agent, "coder", []permission.Grant{grant}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.Readlink(link); err != nil || got != filepath.Base(target) {
		t.Errorf("the link became %q, %v", got, err)
	}
	if got := permission.NewMemory(target).Grants("coder"); len(got) != 1 || got[0] != grant {
		t.Errorf("got %v", got)
	}
}

// TestOwnRules: what an agent says can only make verdicts stricter.
func TestOwnRules(t *testing.T) {
	t.Parallel()
	const user = `execute_command: {"git *": allow, "make": ask, "rm *": deny}
fs_write: allow
`
	for _, tt := range []struct{ name, own, tool, arguments, want string }{
		{"nothing", ``, "execute_command", `{"command":"git push"}`, "allow"},
		{"asks", `execute_command: {"git push*": ask}`, "execute_command", `{"command":"git push"}`, "ask"},
		{"denies", `execute_command: {"git push*": deny}`, "execute_command", `{"command":"git push"}`, "deny"},
		{"of_others", `execute_command: {"git push*": deny}`, "execute_command", `{"command":"git fetch"}`, "allow"},
		{"in_a_list", `execute_command: {"git push*": ask}`, "execute_command", `{"command":"git fetch && git push"}`, "ask"},
		{"hidden", `execute_command: {"git push*": deny}`, "execute_command", `{"command":"git $X"}`, "ask"},
		{"allows_not", `execute_command: allow`, "execute_command", `{"command":"make"}`, "ask"},
		{"allows_not_what_is_denied", `default: allow`, "execute_command", `{"command":"rm x"}`, "deny"},
		{"tool", `fs_write: ask`, "fs_write", `{"path":"a"}`, "ask"},
		{"tool_of_others", `fs_patch: ask`, "fs_write", `{"path":"a"}`, "allow"},
		{"default", `default: deny`, "fs_write", `{"path":"a"}`, "deny"},
		{"default_with_exception", "default: deny\nfs_write: allow\n", "fs_write", `{"path":"a"}`, "allow"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := judge(t, permission.Options{Root: project(t), Shell: "bash", Rules: read(t, user), Own: read(t, tt.own)})
			v := j.Judge(permission.Call{Tool: tt.tool, Arguments: json.RawMessage(tt.arguments), Destructive: true})
			if string(v.Action) != tt.want {
				t.Errorf("got %+v, want %s", v, tt.want)
			}
			if v.Action != permission.Allow && v.Reason == "" {
				t.Errorf("no reason: %+v", v)
			}
		})
	}
}

func TestAnswersThatHoldOnce(t *testing.T) {
	for _, once := range []bool{false, true} {
		j, err := permission.New(permission.Options{Memory: permission.NewMemory(""), Once: once, Root: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		v := j.Judge(permission.Call{Tool: "execute_command", Arguments: []byte(`{"command": "git push origin"}`)})
		if v.Action != permission.Ask || (len(v.Always) == 0) != once {
			t.Errorf("once %t: %+v", once, v)
		}
	}
}

// TestGrantsOfSkills: rules of the user win over what a skill lists, and programs get no more than the level write.
func TestGrantsOfSkills(t *testing.T) {
	t.Parallel()
	root := project(t)
	grants := []permission.Grant{
		{Tool: "execute_command", Command: "git *", Level: sandbox.Write, Skill: "s"}, {Tool: "fs_write", Skill: "s"},
	}
	for _, tt := range []struct {
		name, rules, tool, args string
		boxed                   bool
		want                    permission.Action
		level                   sandbox.Level
	}{
		{"a_command", "", "execute_command", `{"command":"git add x","sandbox":"write"}`, true, permission.Allow, sandbox.Write},
		{"another_command", "", "execute_command", `{"command":"touch x","sandbox":"write"}`, true, permission.Ask, sandbox.Write},
		{"a_second_command", "", "execute_command", `{"command":"git add x; touch x","sandbox":"write"}`, true, permission.Ask, sandbox.Write},
		{"a_higher_level", "", "execute_command", `{"command":"git push","sandbox":"network","hosts":["github.com"]}`, true, permission.Ask, sandbox.Network},
		{"no_sandbox_at_all", "", "execute_command", `{"command":"git add x"}`, false, permission.Ask, sandbox.Full},
		{"a_rule_asks", `execute_command: {"git push *": ask}`, "execute_command", `{"command":"git push x","sandbox":"write"}`, true, permission.Ask, sandbox.Write},
		{"a_rule_denies", `execute_command: {"git push *": deny}`, "execute_command", `{"command":"git push x","sandbox":"write"}`, true, permission.Deny, ""},
		{"a_rule_asks_always", "execute_command: ask", "execute_command", `{"command":"git add x","sandbox":"write"}`, true, permission.Ask, sandbox.Write},
		{"a_file", "", "fs_write", `{"path":"a.txt"}`, true, permission.Allow, ""},
		{"a_file_outside", "", "fs_write", `{"path":"/tmp/a.txt"}`, true, permission.Ask, ""},
		{"a_guarded_file", "", "fs_write", `{"path":".git/hooks/x"}`, true, permission.Ask, ""},
		{"a_file_that_a_rule_asks_about", "fs_write: ask", "fs_write", `{"path":"a.txt"}`, true, permission.Ask, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := permission.NewMemory("")
			if err := m.Add(t.Context(), permission.Session, "", grants); err != nil {
				t.Fatal(err)
			}
			j := judge(t, permission.Options{Root: root, Memory: m, Rules: read(t, tt.rules), Sandboxed: tt.boxed})
			v := j.Judge(permission.Call{Tool: tt.tool, Arguments: json.RawMessage(tt.args), Destructive: true})
			if v.Action != tt.want || tt.level != "" && v.Level != tt.level {
				t.Errorf("%s at %s (%s), want %s at %s", v.Action, v.Level, v.Reason, tt.want, tt.level)
			}
		})
	}
}
