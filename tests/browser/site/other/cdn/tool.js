export const tool = "tool";
