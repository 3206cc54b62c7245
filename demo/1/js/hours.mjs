// Opening hours: a table from the day of the week (0 is Sunday) to its first and last hour.
export function isOpen(hours, now) {
  const today = hours[now.getDay()];
  return today !== undefined && now.getHours() >= today[0] && now.getHours() < today[1];
}

export function describe(hours, now) {
  const today = hours[now.getDay()];
  if (today === undefined) {
    return "Closed today.";
  }
  return isOpen(hours, now) ? `Open now, until ${today[1]}.` : `Today from ${today[0]} to ${today[1]}.`;
}
