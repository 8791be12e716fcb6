// @sandbox network wttr.in

/**
 * Get the current weather in a given location.
 *
 * @param location - The city and, optionally, the state or country, such as "Paris" or "San Francisco, CA"
 */
export async function run(location: string): Promise<string> {
  const reply = await fetch(`https://wttr.in/${encodeURIComponent(location)}?format=4&M`, { signal: AbortSignal.timeout(30_000) });
  if (!reply.ok) {
    throw new Error(`wttr.in answered ${reply.status} ${reply.statusText}`);
  }
  return (await reply.text()).trim();
}
