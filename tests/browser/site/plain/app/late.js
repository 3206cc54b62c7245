export const late = "late";
