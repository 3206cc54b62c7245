window.isAdded = "added";
