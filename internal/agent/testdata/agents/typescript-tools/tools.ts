/**
 * Get the weather.
 *
 * @param city - The city
 */
export function getWeather(city: string): string {
  return city;
}

function hidden() {}
