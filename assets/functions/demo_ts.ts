// @sandbox read

/**
 * Demonstrates the parameter types of a TypeScript tool, and returns what it was given.
 *
 * @param string - A required string
 * @param string_enum - A required string with two possible values
 * @param boolean - A required boolean
 * @param number - A required number
 * @param array_bracket - A required array of strings, written with brackets
 * @param array_generic - A required array of strings, written as a generic type
 * @param string_optional - An optional string, with a question mark
 * @param string_nullable - An optional string, which may be null
 * @param number_with_default - A number with a default
 * @param boolean_with_default - A boolean with a default
 * @param string_with_default - A string with a default
 * @param array_optional - An optional array of strings
 */
export function run(
  string: string,
  string_enum: "foo" | "bar",
  boolean: boolean,
  number: number,
  array_bracket: string[],
  array_generic: Array<string>,
  string_optional?: string,
  string_nullable: string | null = null,
  number_with_default: number = 42,
  boolean_with_default: boolean = true,
  string_with_default: string = "hello",
  array_optional?: string[],
): string {
  const given = {
    string, string_enum, boolean, number, array_bracket, array_generic, string_optional, string_nullable,
    number_with_default, boolean_with_default, string_with_default, array_optional,
  };
  const lines = Object.entries(given).map(([name, value]) => `${name}: ${Array.isArray(value) ? JSON.stringify(value) : value}`);
  for (const [name, value] of Object.entries(process.env).sort()) {
    if (name.startsWith("LLM_")) {
      lines.push(`${name}: ${value}`);
    }
  }
  return lines.join("\n");
}
